-- grant.lua: prelude of the scripts of read-write locks, which let waiters in; behind dead.lua. Those of
-- mutexes and fair locks have copies in prelude/lock.lua.

-- token_for reserves the fencing tokens of a grant and returns the last of them as text; '0' without fencing, where counter
-- is nil. It returns '0' as well if the counter refuses: the process then asks for a token, and the reply says what is wrong.
local function token_for(counter)
  local token = '0'
  if counter then
    token = redis.pcall('incrby', counter, '@TOKENS@')
    token = type(token) == 'number' and token < @TOKEN_END@ and string.format('%.0f', token) or '0'
  end
  return token
end

-- message_of returns the message of a grant:
--
--   g <number> <claim> <seconds> <microseconds> <turn> <1 if others wait, else 0> <last token>
--
-- with the server's time, and with turn, which grant in a row this is.
local function message_of(number, claim, time, turn, more, token)
  return 'g ' .. number .. ' ' .. claim .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. turn .. (more and ' 1 ' or ' 0 ') .. token
end

-- unheard reports whether no client listens to an inbox. A node of a cluster knows only its own listeners, and
-- counted = '0' says that the caller's client is a cluster's.
local function unheard(inbox, counted)
  return counted == '1' and redis.pcall('pubsub', 'numsub', inbox)[2] == 0
end

-- grant sends a message to the process of id, which has the lock: for the claim, unless it
-- renews that. It returns false, having sent nothing, if the process is taken for dead.
-- It asks before, and does not go by whom PUBLISH has reached: replicas pass messages on, and a process
-- that still listens to what has become one would believe a grant that was undone.
local function grant(inbox, message, counted, deadlines, id)
  if unheard(inbox, counted) and known_dead(deadlines, id) then
    return false
  end
  redis.pcall('publish', inbox, message)
  return true
end
