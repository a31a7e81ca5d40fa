-- permit_attach.lua: take over the permits that permit_stay.lua has left to the ids of a ticket. Places in the queue stay.
--
-- KEYS[1]  available: how many permits are: number
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  tombstones: zset of owner ids that were given up
-- KEYS[4]  held: the permits that are not: zset, see lib/permit.lua
-- ARGV[1]  id: the owner id of the claim
-- ARGV[2]  lease: TTL, milliseconds
-- ARGV[3]  before: the one of the ticket
--
-- Returns  n  done, as attach.lua says it
--         -1  the ticket does not have all of its permits; or this id was given up

-- include: permit queue keys

local refusal = not_master(held, 'zrem')
if refusal then
  return refusal
end
local new, buried = permits_of(id), redis.pcall('zscore', tombstones, id)
if type(redis.pcall('zscore', held, new[1])) == 'string' then
  return 0
elseif type(buried) == 'table' then
  return buried
end
return not buried and replace_permits(available, queue, held, permits_of(before), new, server_time(), lease) or @RELEASE_GONE@
