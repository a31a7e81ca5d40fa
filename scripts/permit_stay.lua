-- permit_stay.lua: give the permits of a claim up, and leave them taken for a time: by a claim that no process renews, which may
-- be that of a ticket. A renewal or an acquire of the old one that comes late finds that gone.
--
-- KEYS[1]  available: how many permits are: number
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  held: the permits that are not: zset, see lib/permit.lua
-- KEYS[5]  tombstones: zset of owner ids that were given up
-- ARGV[1]  id: the owner id of the claim
-- ARGV[2]  stays: the one that takes its place
-- ARGV[3]  duration: for how long, milliseconds
-- ARGV[4]  burial: milliseconds for which a late acquire of the id is to be refused; 0 where none can be under way
--
-- Returns  0  done, now or by an earlier copy of this request
--         -1  not held by this owner, or not all of them

-- include: permit queue keys

local refusal = not_master(held, 'zrem')
if refusal then
  return refusal
end
local old, new, now = permits_of(id), permits_of(stays), server_time()
if not replace_permits(available, queue, held, old, new, now, duration) then
  leave(queue, deadlines, id)
end
bury(tombstones, id, burial)
return type(redis.pcall('zscore', held, new[1])) == 'string' and 0 or @RELEASE_GONE@
