-- rw_stay.lua: give a side of a read-write lock up, and leave it taken for a time, as lock_stay.lua does.
--
-- KEYS[1]  the lock: hash, see prelude/rw.lua
-- KEYS[2]  queue of waiters: list, see prelude/queue.lua
-- KEYS[3]  its times: zset
-- KEYS[4]  tombstones: zset of ids that were given up
-- KEYS[5]  of a reader: the key that its right ends with
-- KEYS[6]  of a reader: that of the id that takes its place
-- ARGV[1]  id: the owner id, with :write behind it for the write side
-- ARGV[2]  the id that takes its place
-- ARGV[3]  for how long, milliseconds
-- ARGV[4]  command that tells Redisson's waiters: publish or spublish
-- ARGV[5]  channel on which they listen
-- ARGV[6]  milliseconds for which a late acquire of the id is to be refused; 0 where none can be under way
--
-- Returns what lock_stay.lua does

-- prelude: queue rights redisson dead grant step_out first rw stay leave bury

local lock, id, stays = KEYS[1], ARGV[1], ARGV[2]
local held = redis.pcall('hdel', lock, '') -- as in lock_stay.lua
local wrong = type(held) == 'table'
if wrong and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if not wrong and redis.call('hexists', lock, id) == 1 then
  local failure = put(lock, stays, ARGV[3], KEYS[6])
  if failure then
    return failure
  end
  if is_writer(id) then
    redis.call('hdel', lock, id)
    redis.call('pexpire', lock, ARGV[3])
  else
    take_out(lock, id, KEYS[5])
  end
  tell_end(KEYS[2], redis.call('pttl', lock), ARGV[4], ARGV[5])
  held = 1
else
  leave(KEYS[2], KEYS[3], id)
end
if ARGV[6] ~= '0' then
  bury(KEYS[4], id, ARGV[6])
end
if held == 1 or not wrong and redis.call('hexists', lock, stays) == 1 then
  return 0
end
return -1 - redis.call('exists', lock)
