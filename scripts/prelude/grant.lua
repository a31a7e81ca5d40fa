-- grant.lua: prelude of the scripts of read-write locks, which let waiters in; behind dead.lua. Those of
-- mutexes and fair locks have its contents in prelude/lock.lua.

-- grant tells the process of id that it has the lock: for claim milliseconds, unless it
-- renews that. It returns false, having said nothing, if the process is taken for dead. A node of a
-- cluster knows only its own listeners, and counted = '0' says that the caller's client is a cluster's.
-- It asks before, and does not go by whom PUBLISH has reached: replicas pass messages on, and a process
-- that still listens to what has become one would believe a grant that was undone. The message is
--
--   g <number> <claim> <seconds> <microseconds> <turn> <1 if others wait, else 0> <last token>
--
-- with the server's time, and with turn, which grant in a row this is.
local function grant(inbox, message, counted, deadlines, id)
  if counted == '1' and redis.pcall('pubsub', 'numsub', inbox)[2] == 0 and known_dead(deadlines, id) then
    return false
  end
  redis.pcall('publish', inbox, message)
  return true
end
