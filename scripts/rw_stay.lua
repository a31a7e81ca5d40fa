-- rw_stay.lua: give a side of a read-write lock up, and leave it taken for a time, as lock_stay.lua does.
--
-- KEYS[1]  lock: hash, see prelude/rw.lua
-- KEYS[2]  queue: list of waiters, see prelude/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  tombstones: zset of ids that were given up
-- KEYS[5]  right: of a reader: the key that its right ends with
-- KEYS[6]  right_after: of a reader: that of the id that takes its place
-- ARGV[1]  id: the owner id, with :write behind it for the write side
-- ARGV[2]  stays: the id that takes its place
-- ARGV[3]  duration: for how long, milliseconds
-- ARGV[4]  publish: command that tells Redisson's waiters: publish or spublish
-- ARGV[5]  channel: on which they listen
-- ARGV[6]  burial: milliseconds for which a late acquire of the id is to be refused; 0 where none can be under way
--
-- Returns what lock_stay.lua does

-- prelude: queue wrong_type master rights redisson dead grant step_out first rw stay leave bury

local refusal = not_master(lock)
if refusal then
  return refusal
end
local held = redis.pcall('hexists', lock, id) == 1
if held then
  local failure = put(lock, stays, duration, right_after)
  if failure then
    return failure
  end
  if is_writer(id) then
    redis.call('hdel', lock, id)
    redis.call('pexpire', lock, duration)
  else
    take_out(lock, id, right)
  end
  tell_end(queue, redis.call('pttl', lock), publish, channel)
else
  leave(queue, deadlines, id)
end
if burial ~= '0' then
  bury(tombstones, id, burial)
end
if held or redis.pcall('hexists', lock, stays) == 1 then
  return 0
end
return @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
