-- lock_release.lua: give a mutex or a fair lock back if the owner id still holds it:
-- to the next waiter, if there is one.
--
-- KEYS[1]  lock: hash, owner id -> hold count
-- KEYS[2]  queue: list of waiters, see prelude/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  tombstones: zset of owner ids that were given up; only with ARGV[4] or KEYS[5]
-- KEYS[5]  counter: of fencing tokens; only with fencing
-- ARGV[1]  owner: its id
-- ARGV[2]  publish: command that announces the release: publish or spublish
-- ARGV[3]  offer: how to hand over, "<claim> <turn> <counted>", see prelude/offer.lua
-- ARGV[4]  burial: given up, not released: the owner id leaves the queue; and milliseconds
--          for which a late acquire of it is to be refused, 0 where none can be
--          under way
--
-- An owner that does not hold it, and stands in the queue, has lost a grant with a fail-over: it leaves the queue as well.
--
-- Returns  n        released, no waiter is in the queue or none could be granted it, and n clients were listening
--                   (in a cluster: on this node)
--          message  granted to a waiter of the caller's, see prelude/grant.lua
--         -1        not held by this owner, nor by another
--         -2        not held by this owner but by another one
--         -3        granted to another waiter, or left open for one of Redisson's
--         -4        it is free, but so many in front of the queue are dead that one request does not remove them all: the
--                   same request with ARGV[4] goes on

-- names: lock queue owner burial publish
local try, channel = redis.pcall, 'redisson_lock__channel' .. string.sub(queue, #'redisson_lock_queue' + 1)
local removed = try('hdel', lock, owner) -- the last field takes the key with it
local next = try('lindex', queue, '0')
if removed == 1 and not burial and not next then
  local heard = try(publish, channel, '0') -- the common case: no waiter in the queue
  if heard == 0 or type(heard) == 'number' then
    return heard
  end
end

if type(removed) == 'table' then
  -- prelude: wrong_type

  if not is_wrong_type(removed) then
    return removed
  end
end

-- names: deadlines counter offer
local free = removed == 1
if burial or removed ~= 1 then
  -- prelude: leave

  leave(queue, deadlines, owner)
  local was = next
  next, free = try('lindex', queue, '0'), free or burial and redis.call('exists', lock) == 0

  -- prelude: successor

end

-- prelude: pass_on

if burial and burial ~= '0' then
  -- prelude: queue bury

  -- names: tombstones
  bury(tombstones, owner, burial)
end
return reply
