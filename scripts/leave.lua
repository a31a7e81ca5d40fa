-- leave.lua: take several waiters of one process out of the queue of a fair lock, and pass the lock on if one of them has been granted
-- it. For one alone lock_release.lua does the same.
--
-- KEYS[1]    lock: hash, owner id -> hold count
-- KEYS[2]    queue: list of waiters, see lib/queue.lua
-- KEYS[3]    deadlines: zset that belongs to the queue
-- KEYS[4]    tombstones: zset of owner ids that were given up
-- KEYS[5]    counter: of fencing tokens; only with fencing
-- ARGV[1]    publish: command that announces the release: publish or spublish
-- ARGV[2]    offer: how to hand over, as in lock_release.lua
-- ARGV[3]    burial: milliseconds for which a late acquire is to be refused
-- ARGV[4]    late: of how many ids, the first ones, an acquire may come late
-- ARGV[5]    prefix: what the ids of the caller begin with
-- ARGV[5+i]  tail: what the i-th id ends with
--
-- Returns    as lock_release.lua, about all of them: n, a message, -1, -2, -3 or -4

-- include: queue grant redisson keys

local ids, leaves = {}, {}
for i = 1, #ARGV - 5 do
  local id = prefix .. tail
  ids[i], leaves[id] = id, true
end
local removed = redis.pcall('hdel', lock, unpack(ids))
if type(removed) == 'table' and not is_wrong_type(removed) then
  return removed
end
local was = head(queue)
redis.pcall('zrem', deadlines, unpack(ids))

-- Each LREM reads the list up to the id, so there is only one: all places get one name before, which is no waiter's. Should one stay,
-- first in lib/queue.lua throws it away. The list is read from the front, where those who leave mostly stand, as far as needed.
local places, at = {}, 0
repeat
  local part = redis.pcall('lrange', queue, at, at + @PLACES@ - 1)
  for i, id in ipairs(part) do
    if leaves[id] then
      places[#places + 1] = at + i - 1
    end
  end
  at = at + @PLACES@
until #part < @PLACES@ or #places >= #ids
local refused = false -- by an ACL of an earlier version
for _, place in ipairs(places) do
  refused = refused or redis.pcall('lset', queue, place, '').err ~= nil
end
for i = 1, refused and #ids or #places > 0 and 1 or 0 do
  redis.pcall('lrem', queue, refused and '0' or #places, refused and ids[i] or '')
end

local o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, publish = publish, channel = channel_of(queue),
  own = inbox_of(ids[1]), add = put, remove = take_back, leave_to = leave_to_redisson}
local free, reply = removed == 1 or redis.call('exists', lock) == 0, nil
if not free then
  notify_next(lock, queue, was)
elseif head(queue) then
  reply = pass_on(o, offer, free)
end
reply = released(o, reply, removed == 1, free)
for i = 1, tonumber(late) do
  bury(tombstones, ids[i], burial)
end
return reply
