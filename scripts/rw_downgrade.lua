-- rw_downgrade.lua: turn the write side into the read side, for an owner that has read
-- leases left when its last write lease ends, and let in readers that wait.
--
-- KEYS[1]  the lock: hash, see prelude/rw.lua
-- KEYS[2]  queue of waiters: list, see prelude/queue.lua
-- KEYS[3]  its times: zset
-- KEYS[4]  the key that the owner's right as a reader ends with
-- KEYS[5]  tombstones: zset of ids that were given up
-- KEYS[6]  fencing counter; only with fencing
-- ARGV[1]  owner id
-- ARGV[2]  command that announces it: publish or spublish
-- ARGV[3]  how to hand over, as ARGV[4] of lock_release.lua
-- ARGV[4]  TTL, milliseconds
--
-- Returns  0  done, now or by an earlier copy of this request
--         -1  not held by this owner, nor by another
--         -2  not held by this owner but by another one

-- prelude: queue rights redisson dead grant step_out first rw leave

-- Changes nothing: a write that fails on a replica, where nothing is known for certain, and not for
-- want of memory, which then keeps no other write from being done.
local written = redis.pcall('zrem', KEYS[5], '')
if type(written) == 'table' and not string.find(written.err, 'WRONGTYPE', 1, true) then
  return written
end

local lock, queue, right, writer = KEYS[1], KEYS[2], KEYS[4], ARGV[1] .. ':write'
if redis.call('hexists', lock, writer) == 1 and type(redis.pcall('zscore', KEYS[5], ARGV[1])) ~= 'string' then
  local failure = put(lock, ARGV[1], ARGV[4], right)
  if failure then
    redis.call('hset', lock, 'mode', 'write')
    return failure
  end
  redis.call('hdel', lock, writer)
  announce(ARGV[2], channel_of(queue), true) -- Redisson's own downgrade does not tell its readers
  if redis.call('exists', queue) == 1 then
    -- The lock is not free, so it is no turn of Redisson's yet: those let in go on counting.
    local claim, turn, counted = string.match(ARGV[3], '^(%d+) (%d+) (%d)$')
    local now, time = server_time()
    let_in({lock = lock, queue = queue, deadlines = KEYS[3], counter = KEYS[6], now = now, time = time,
      claim = claim, turn = math.min(turn, 16), counted = counted})
  end
elseif redis.call('hexists', lock, ARGV[1]) == 0 or redis.call('exists', right) == 0 then
  leave(queue, KEYS[3], writer) -- as in lock_release.lua
  return -1 - redis.call('exists', lock)
else -- the caller counts the right from this copy
  return put(lock, ARGV[1], ARGV[4], right) or 0
end
return 0
