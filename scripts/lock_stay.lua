-- lock_stay.lua: give a mutex or a fair lock up, and leave it taken for a time: by an owner id that no process
-- renews. A renewal or an acquire of the old one that comes late finds that gone.
--
-- KEYS[1]  lock: hash, owner id -> hold count
-- KEYS[2]  queue: list of waiters, see prelude/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  tombstones: zset of owner ids that were given up
-- ARGV[1]  owner: its id
-- ARGV[2]  stays: the owner id that takes its place
-- ARGV[3]  duration: for how long, milliseconds
-- ARGV[4]  publish: command that tells Redisson's waiters: publish or spublish
-- ARGV[5]  channel: on which they listen
-- ARGV[6]  burial: milliseconds for which a late acquire of the owner id is to be refused; 0 where none can be under way
--
-- Returns  0  done, now or by an earlier copy of this request
--         -1  not held by this owner, nor by another one
--         -2  not held by this owner but by another one

-- prelude: queue wrong_type master redisson stay leave bury

local refusal = not_master(lock)
if refusal then
  return refusal
end
local held = redis.pcall('hexists', lock, owner) == 1
if held then
  local set = redis.pcall('pexpire', lock, duration)
  if set ~= 1 then
    return set
  end
  redis.call('hset', lock, stays, '1')
  redis.call('hdel', lock, owner)
  tell_end(queue, duration, publish, channel)
else -- it may have lost a grant with a fail-over, as in lock_release.lua
  leave(queue, deadlines, owner)
end
if burial ~= '0' then
  bury(tombstones, owner, burial)
end
if held or redis.pcall('hexists', lock, stays) == 1 then
  return 0
end
return @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
