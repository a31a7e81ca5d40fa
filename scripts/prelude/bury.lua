-- bury.lua: prelude of the scripts that leave tombstones; behind queue.lua.

-- bury leaves a tombstone for id, which refuses late copies of its acquire. It comes last:
-- Redis refuses a first write that needs memory when it has none, and none after it.
-- Where it refuses this one, it refuses a late acquire as well.
local function bury(tombstones, id, duration)
  local now = server_time()
  if redis.pcall('zadd', tombstones, now + duration, id) == 1 then
    -- prelude: expire

    expire(tombstones, duration)
    redis.pcall('zremrangebyscore', tombstones, '-inf', now)
  end
end
