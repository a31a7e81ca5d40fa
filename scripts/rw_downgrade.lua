-- rw_downgrade.lua: turn the write side into the read side, for an owner that has read leases left when its last write lease ends, and
-- let in readers that wait.
--
-- KEYS[1]  lock: hash, see lib/rights.lua
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  right: the key that the owner's right as a reader ends with
-- KEYS[5]  tombstones: zset of ids that were given up
-- KEYS[6]  counter: of fencing tokens; only with fencing
-- ARGV[1]  owner: its id
-- ARGV[2]  publish: command that announces it: publish or spublish
-- ARGV[3]  offer: how to hand over, as in lock_release.lua
-- ARGV[4]  lease: TTL, milliseconds
--
-- Returns  0  done, now or by an earlier copy of this request
--         -1  not held by this owner, nor by another
--         -2  not held by this owner but by another one

-- include: queue grant redisson rights keys

local refusal = not_master(lock)
if refusal then
  return refusal
end

local writer = owner .. ':write'
if redis.call('hexists', lock, writer) == 1 and type(redis.pcall('zscore', tombstones, owner)) ~= 'string' then
  local failure = put_side(lock, owner, lease, right)
  if failure then
    redis.call('hset', lock, 'mode', 'write')
    return failure
  end
  redis.call('hdel', lock, writer)
  announce(publish, channel_of(queue), true) -- Redisson's own downgrade does not tell its readers
  if redis.call('exists', queue) == 1 then
    local o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, sides = true, add = put_side, remove = remove_side}
    o.claim, o.turn, o.counted = offer_of(offer)
    o.turn = math.min(o.turn, @TURNS@) -- the lock is not free, so it is no turn of Redisson's yet: those let in go on counting
    let_in(o)
  end
elseif redis.call('hexists', lock, owner) == 0 or redis.call('exists', right) == 0 then
  leave(queue, deadlines, writer) -- as in lock_release.lua
  return @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
else -- the caller counts the right from this copy
  return put_side(lock, owner, lease, right) or 0
end
return 0
