-- lock_stay.lua: give a mutex or a fair lock up, and leave it taken for a time: by an owner id that no process
-- renews. A renewal or an acquire of the old one that comes late finds that gone.
--
-- KEYS[1]  the lock: hash, owner id -> hold count
-- KEYS[2]  queue of waiters: list, see prelude/queue.lua
-- KEYS[3]  its times: zset
-- KEYS[4]  tombstones: zset of owner ids that were given up
-- ARGV[1]  owner id
-- ARGV[2]  the owner id that takes its place
-- ARGV[3]  for how long, milliseconds
-- ARGV[4]  command that tells Redisson's waiters: publish or spublish
-- ARGV[5]  channel on which they listen
-- ARGV[6]  milliseconds for which a late acquire of the owner id is to be refused; 0 where none can be under way
--
-- Returns  0  done, now or by an earlier copy of this request
--         -1  not held by this owner, nor by another one
--         -2  not held by this owner but by another one

-- prelude: queue redisson stay leave bury

-- Changes nothing: a write that fails on a replica, and not for want of memory, which then keeps no other write from
-- being done.
local held = redis.pcall('hdel', KEYS[1], '')
local wrong = type(held) == 'table'
if wrong and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if not wrong and redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
  local set = redis.pcall('pexpire', KEYS[1], ARGV[3])
  if set ~= 1 then
    return set
  end
  redis.call('hset', KEYS[1], ARGV[2], '1')
  redis.call('hdel', KEYS[1], ARGV[1])
  tell_end(KEYS[2], ARGV[3], ARGV[4], ARGV[5])
  held = 1
else -- it may have lost a grant with a fail-over, as in lock_release.lua
  leave(KEYS[2], KEYS[3], ARGV[1])
end
if ARGV[6] ~= '0' then
  bury(KEYS[4], ARGV[1], ARGV[6])
end
if held == 1 or not wrong and redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  return 0
end
return -1 - redis.call('exists', KEYS[1])
