-- leave.lua: prelude of the scripts that take waiters out of the queue.

-- leave takes id out of the queue.
local function leave(queue, deadlines, id)
  if redis.pcall('zrem', deadlines, id) == 1 then
    redis.pcall('lrem', queue, '1', id)
  end
end
