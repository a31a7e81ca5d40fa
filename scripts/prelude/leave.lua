-- leave.lua: prelude of the scripts that take waiters out of the queue.

-- leave takes id out of the queue, even if another client has deleted the zset.
local function leave(queue, deadlines, id)
  local left = redis.pcall('zrem', deadlines, id) == 1
  local waiting = not left and redis.pcall('llen', queue)
  if left or waiting ~= 0 and waiting ~= redis.pcall('zcount', deadlines, '-inf', '+inf') then
    redis.pcall('lrem', queue, '0', id)
  end
end
