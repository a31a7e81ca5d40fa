-- attach.lua: take over a hold of any kind that stay.lua has left to the id of a ticket. Places in the queue stay.
-- Redisson's waiters are not told of an earlier end.
--
-- KEYS[1]  lock: hash, see lock_acquire.lua and lib/rights.lua
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  tombstones: zset of ids that were given up
-- KEYS[4]  right: of a reader: the key that its right ends with
-- KEYS[5]  right_before: of a reader: that of the ticket's id
-- ARGV[1]  id: the owner id, with :write behind it for the write side
-- ARGV[2]  lease: TTL, milliseconds
-- ARGV[3]  before: the id of the ticket, likewise
--
-- Returns  n  done: for so many milliseconds the ticket was still good. 0: it was good for less, the lock had no TTL, or an earlier copy of
--             this request has done it
--         -1  the ticket's id does not hold the lock, nor does another one; or this id was given up
--         -2  the ticket's id does not hold it but another one

-- include: keys queue rights

local refusal = not_master(lock)
if refusal then
  return refusal
end
local held = redis.pcall('hexists', lock, id) == 1
local buried = not held and redis.pcall('zscore', tombstones, id)
if type(buried) == 'table' then
  return buried
elseif held then
  return 0
end
local left = redis.call('pttl', right_before or lock)
if not buried and left ~= -2 and redis.pcall('hexists', lock, before) == 1 then
  refusal = replace(lock, before, id, lease, right_before, right)
  if not refusal and left > tonumber(lease) then
    notify_next(lock, queue) -- waiters know of the ticket's end
  end
  return refusal or math.max(left, 0)
end
return @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
