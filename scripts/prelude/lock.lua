-- lock.lua: prelude of the scripts that may find a mutex or a fair lock free; behind queue.lua
-- and grant.lua. It is no function but the hand-over itself, which everybody waits for: with
-- functions, and a table for what they need, a release took the server a quarter longer.
--
-- It gives the lock to the first live waiter, id in the beginning. It uses of the script
--   lock, queue, deadlines  keys
--   channel, publish        where Redisson's waiters are told, and how
--   counter                 the key of the fencing counter; nil without fencing
--   now, clock              the server's time, from server_time
--   claim, turn             of the grant, see prelude/grant.lua
--   counted                 see there
--   manager                 what the ids of the caller begin with; nil: a message is not its reply
--   last                    the last in the queue, if known
--   me                      the caller's own id, if it waits
-- and sets told
--   nil      nobody waits; me has been taken out of the queue as the first
--   message  granted to a waiter of manager
--   0        granted to another of ours, or left free for one of Redisson's

local told
while id and not told do
  local inbox, number = inbox_of(id)
  local kept = tonumber(redis.call('zscore', deadlines, id) or nil)
  if inbox and kept and kept > now then
    local others = step_out(queue, deadlines, id, last and last ~= id)
    if id == me then
      break
    end
    local token = '0'
    if counter then
      token = redis.pcall('incrby', counter, '128')
      token = type(token) == 'number' and string.format('%.0f', token) or '0' -- it asks for one, and is told what is wrong
    end
    redis.call('hset', lock, id, '1')
    if redis.pcall('pexpire', lock, claim) ~= 1 then
      redis.call('hdel', lock, id)
      break
    end
    local message = 'g ' .. number .. ' ' .. claim .. ' ' .. clock .. ' ' .. turn .. ' ' .. others .. ' ' .. token
    if manager and string.sub(id, 1, #manager) == manager then
      told = message
    elseif grant(inbox, message, kept, counted) then
      told = 0
    else
      redis.call('hdel', lock, id) -- its process is dead, or asks when it hears again
      id = redis.call('lindex', queue, '0')
    end
  else
    -- prelude: first

    id, kept = first(queue, deadlines, now)
    if id and not inbox_of(id) then
      -- prelude: redisson

      -- Offered to a waiter of Redisson, which has no longer than ours to take it.
      if kept > now + 5000 then
        redis.call('zadd', deadlines, now + 5000, id)
      end
      tell(publish, channel .. ':' .. id, '0')
      -- Its release will be told on a channel that ours do not listen to yet.
      for _, other in ipairs(redis.call('lrange', queue, '1', '8')) do
        inbox, number = inbox_of(other)
        if inbox then
          if other ~= me then
            redis.pcall('publish', inbox, 'o ' .. number)
          end
          break
        end
      end
      told = 0
    end
  end
end
