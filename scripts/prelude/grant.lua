-- grant.lua: prelude of the scripts that let waiters in; behind queue.lua.

-- step_out takes id, which is the first, out of the queue. It returns '1' if others wait
-- behind it, else '0'. The caller may know that others do.
local function step_out(queue, deadlines, id, others)
  if not others and redis.call('llen', queue) == 1 then
    redis.call('del', queue, deadlines)
    return '0'
  end
  redis.call('lpop', queue)
  redis.call('zrem', deadlines, id)
  return '1'
end

-- grant tells a process of ours that it has the lock: for claim milliseconds, unless it
-- renews that. It returns false if the process is known to be deaf: PUBLISH reached nobody,
-- on a server where that can be told, which counted = '1' says, although the process had an
-- inbox when it last asked, which kept, the time of its place, says. The message is
--
--   g <number> <claim> <seconds> <microseconds> <turn> <1 if others wait, else 0> <last token>
--
-- with the server's time, and with turn, which grant in a row this is.
local function grant(inbox, message, kept, counted)
  local heard = redis.pcall('publish', inbox, message)
  return heard ~= 0 or kept % 1 ~= 0 or counted ~= '1'
end
