-- leave.lua: prelude of the scripts that take waiters out of the queue; behind queue.lua.

-- leave takes id out of the queue.
local function leave(queue, deadlines, id)
  if redis.pcall('zrem', deadlines, id) == 1 then
    redis.pcall('lrem', queue, '1', id)
  end
end

-- bury leaves a tombstone for id, which refuses late copies of its acquire. It comes last:
-- Redis refuses a first write that needs memory when it has none, and none after it.
-- Where it refuses this one, it refuses a late acquire as well.
local function bury(tombstones, id, duration)
  local now = milliseconds()
  if redis.pcall('zadd', tombstones, now + duration, id) == 1 then
    if redis.pcall('pexpire', tombstones, duration) ~= 1 then
      redis.call('del', tombstones) -- an ACL that forbids it: never leave a key without TTL
    end
    redis.pcall('zremrangebyscore', tombstones, '-inf', now)
  end
end
