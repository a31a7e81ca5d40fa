-- leave.lua: prelude of the scripts that take waiters out of the queue.

-- leave takes id out of the queue, also if somebody has deleted the zset.
local function leave(queue, deadlines, id)
  if redis.pcall('zrem', deadlines, id) == 1 or redis.pcall('zcount', deadlines, '-inf', '+inf') ~= redis.pcall('llen', queue) then
    redis.pcall('lrem', queue, '0', id)
  end
end
