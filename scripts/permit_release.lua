-- permit_release.lua: give the permits of a claim back: to the waiters that they suffice for, if there are some.
--
-- KEYS[1]  available: how many permits are: number
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  held: the permits that are not: zset, see lib/permit.lua
-- KEYS[5]  tombstones: zset of owner ids that were given up; only with ARGV[5]
-- ARGV[1]  id: the owner id of the claim
-- ARGV[2]  publish: command that announces the release: publish or spublish
-- ARGV[3]  offer: how to hand over, as in lock_release.lua
-- ARGV[4]  permits: the ids of the permits of the claim, one behind the other
-- ARGV[5]  burial: given up, not released, as in lock_release.lua
--
-- Returns what lock_release.lua does, but -2

-- include: permit queue grant redisson keys

local had = take_away(available, held, split(permits))
if type(had) == 'number' and had > 0 and not burial and not head(queue) then -- the common case: no waiter in the queue
  local count = number_of(available)
  return count and count > 0 and tell(publish, channel_of(queue), count) or 0
end
if type(had) == 'table' and not is_wrong_type(had) then
  return had
end
local freed = type(had) == 'number' and had > 0
if burial or not freed then
  leave(queue, deadlines, id)
end
local count, reply = number_of(available), nil
if count and head(queue) then
  local o = line_of(available, queue, deadlines, held, server_time())
  o.publish, o.own = publish, inbox_of(id)
  reply = pass_on(o, offer, count > 0)
  count = number_of(available)
elseif freed then -- the next waiter knows how many there are to be, and asks
  reply = notify(head(queue), 'o') and @RELEASE_HANDED_OVER@
end
bury(tombstones, id, burial)
local heard = (freed or reply) and count and count > 0 and tell(publish, channel_of(queue), count) or 0
if freed or type(reply) == 'string' or reply == @RELEASE_CROWDED@ then
  return reply or heard
end
return @RELEASE_GONE@
