-- step_out.lua: prelude of the scripts that take the first out of a queue.

-- step_out takes id, which is the first, out of the queue, in which there may be more.
local function step_out(queue, deadlines, id, more)
  if more then
    redis.call('lpop', queue)
    redis.call('zrem', deadlines, id)
  else
    redis.call('del', queue, deadlines)
  end
end
