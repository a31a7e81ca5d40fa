-- join.lua: put several waiters of one process into the queue of a fair lock, in order, behind a first one that has asked for the lock
-- itself, or that will. A repeated request finds those that stand there, and puts the others behind the waiters that came meanwhile.
-- Or let them keep the places that they had, and return to the front if those were taken away.
--
-- KEYS[1]    lock: hash, owner id -> hold count
-- KEYS[2]    queue: list of waiters, see lib/queue.lua
-- KEYS[3]    deadlines: zset that belongs to the queue
-- KEYS[4]    tombstones: zset of owner ids that were given up
-- ARGV[1]    wait: how they wait, see lib/place.lua
-- ARGV[2]    prefix: what the ids begin with
-- ARGV[2+i]  tail: what the i-th id ends with
--
-- Returns {0, 0, ttl, now, foreign}
--                           they stand in the queue, but for those with a tombstone; the TTL of the lock, 0 if it is free; the
--                           server's time; 1 if Redisson's hold it or stand before them
--         {-1, key, text}   as lock_acquire.lua does

-- include: queue place keys

local fields, graves = redis.pcall('hlen', lock), redis.call('type', tombstones).ok
if type(fields) == 'table' or fields > 1 then
  return wrong(lock, fields)
elseif graves ~= 'none' and graves ~= 'zset' then
  return wrong(tombstones)
end
local now, ids = server_time(), {}
local place, deadline = place_of(wait, now)
for i = 1, #ARGV - 2 do
  local id = prefix .. tail
  local gone = graves == 'zset' and redis.call('zscore', tombstones, id) or redis.call('hexists', lock, id) == 1
  if not gone then
    ids[#ids + 1] = id
  end
end
local before, foreign, back = {}, false, place == 'same' and #ids > 0
if back then
  local kind = redis.call('type', queue).ok
  if kind ~= 'none' and kind ~= 'list' then
    return wrong(queue)
  end
  come_back(queue, ids)
end
for _, id in ipairs(ids) do
  local failure, after = stand(lock, queue, deadlines, id, place, deadline, before, back)
  if failure then
    return failure
  end
  foreign = after or foreign
end
local holder = redis.call('hkeys', lock)[1]
foreign = foreign or holder and not inbox_of(holder)
local ttl = redis.call('pttl', lock)
return {@ACQUIRE_HELD@, @STATE_HELD@, ttl == -2 and 0 or ttl, now, foreign and 1 or 0}
