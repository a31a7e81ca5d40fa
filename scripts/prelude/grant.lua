-- grant.lua: prelude of the scripts that let waiters in; behind queue.lua.

-- step_out takes id, which is the first of waiting, out of the queue.
local function step_out(queue, deadlines, id, waiting)
  if waiting == 1 then
    redis.call('del', queue, deadlines)
  else
    redis.call('lpop', queue)
    redis.call('zrem', deadlines, id)
  end
end

-- grant tells the process of id that it has the lock: for claim milliseconds, unless it
-- renews that. It returns false, having said nothing, if the process is known to be dead: nobody
-- listens to its inbox, although the process had one when it last asked, which the time of its place
-- says. A node of a cluster knows only its own listeners: counted = '0' says that the caller's client
-- is a cluster's, and a plain client may be connected to a node as well. It asks before, and does not
-- go by whom PUBLISH has reached: replicas pass messages on, and a process that still listens to
-- what has become one would believe a grant that was undone. The message is
--
--   g <number> <claim> <seconds> <microseconds> <turn> <1 if others wait, else 0> <last token>
--
-- with the server's time, and with turn, which grant in a row this is.
local function grant(inbox, message, counted, deadlines, id)
  if counted == '1' and redis.pcall('pubsub', 'numsub', inbox)[2] == 0 and (redis.call('zscore', deadlines, id) or 0) % 1 == 0
    and type(redis.pcall('cluster', 'info')) == 'table' then -- an error: it is none
    return false
  end
  redis.pcall('publish', inbox, message)
  return true
end
