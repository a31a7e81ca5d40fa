-- stay.lua: give a hold of any kind up, and leave the lock taken for a time: by an id that no process renews, which may be that of a
-- ticket. A renewal or an acquire of the old one that comes late finds that gone.
--
-- KEYS[1]  lock: hash, see lock_acquire.lua and lib/rights.lua
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
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
-- Returns  0  done, now or by an earlier copy of this request
--         -1  not held by this owner, nor by another one
--         -2  not held by this owner but by another one

-- include: keys queue redisson rights

local refusal = not_master(lock)
if refusal then
  return refusal
end
local held = redis.pcall('hexists', lock, id) == 1
if held then
  refusal = replace(lock, id, stays, duration, right, right_after)
  if refusal then
    return refusal
  end
  local next, left = head(queue), redis.call('pttl', lock) -- waiters know of another time
  if next and not notify(next, 'o', left) then
    tell(publish, channel .. ':' .. next, '0')
  end
  tell(publish, channel, '0')
else -- it may have lost a grant with a fail-over, as in lock_release.lua
  leave(queue, deadlines, id)
end
bury(tombstones, id, burial)
if held or redis.pcall('hexists', lock, stays) == 1 then
  return 0
end
return @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
