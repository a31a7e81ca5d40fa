-- keep.lua: keep the places of several waiters of one process in one queue. It makes no place for a waiter that has none: one that was
-- given up must not come back.
--
-- KEYS[1]    lock: hash, owner id -> hold count
-- KEYS[2]    queue: list of waiters, see lib/queue.lua
-- KEYS[3]    deadlines: zset that belongs to the queue
-- ARGV[1]    wait: how they wait, see lib/place.lua
-- ARGV[2]    prefix: what the ids begin with
-- ARGV[2+i]  tail: what the i-th id ends with
--
-- Returns an array with one code per id:
--          1   it keeps its place
--          0   it has none, or the list has lost it
--          2   it has been granted the lock

-- include: queue place

local now = server_time()
local _, deadline = place_of(wait, now)
local before, codes, ids, times, some = {}, {}, {}, {}, false
for i = 1, #ARGV - 2 do
  local id = prefix .. tail
  ids[i], ids[id], times[i] = id, true, redis.call('zscore', deadlines, id)
  some = some or times[i]
end
local there = some and listed(queue, deadlines, ids)
for i, id in ipairs(ids) do
  codes[i] = @KEEP_GONE@
  if times[i] and there[id] then
    redis.call('zadd', deadlines, (kept_until(queue, deadline, id, times[i], before)), id)
    codes[i] = @KEEP_DONE@
  elseif redis.pcall('hexists', lock, id) == 1 then
    codes[i] = @KEEP_GRANTED@
  end
end
if redis.call('exists', lock, queue) > 0 then
  keep_keys(queue, deadlines)
end
return codes
