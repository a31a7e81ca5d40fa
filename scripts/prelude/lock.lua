-- lock.lua: prelude of the scripts that may find a mutex or a fair lock free; behind queue.lua
-- and grant.lua. It is no function but the hand-over itself, which everybody waits for: with
-- functions, and a table for what they need, a release took the server a quarter longer.
--
-- It gives the lock to the first live waiter, id in the beginning. It uses of the script
--   lock, queue, deadlines  keys
--   channel, publish        where Redisson's waiters are told, and how
--   counter                 the key of the fencing counter; nil without fencing
--   time                    the reply of TIME
--   claim, turn             of the grant, see prelude/grant.lua
--   counted                 see there
--   manager                 what the ids of the caller begin with; nil: a message is not its reply
--   waiting                 how many stand in the queue
--   me                      the caller's own id, if it waits
-- and sets told
--   nil      nobody waits; me has been taken out of the queue as the first
--   message  granted to a waiter of manager
--   0        granted to another of ours, or left free for one of Redisson's

local told, alive
while id and not told do
  local inbox, number = inbox_of(id)
  -- Mostly all places are in time, and that is one command and no number to read: with ZSCORE
  -- and a comparison this took the server a fifth longer. A place counts as kept for what is
  -- left of the second in which it ends.
  if inbox and (id == alive or redis.call('zcount', deadlines, time[1] .. '000', '+inf') == waiting) then
    if id == me then
      step_out(queue, deadlines, id, waiting)
      break
    end
    local token = '0'
    if counter then
      token = redis.pcall('incrby', counter, '128')
      token = type(token) == 'number' and token < 2 ^ 53 and string.format('%.0f', token) or '0' -- it asks for one, and is told what is wrong
    end
    redis.call('hset', lock, id, '1')
    if redis.pcall('pexpire', lock, claim) ~= 1 then
      redis.call('hdel', lock, id)
      break
    end
    local message = 'g ' .. number .. ' ' .. claim .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. turn .. (waiting > 1 and ' 1 ' or ' 0 ') .. token
    if manager and string.sub(id, 1, #manager) == manager then
      told = message
    elseif grant(inbox, message, counted, deadlines, id) then
      told = 0
    else
      redis.call('hdel', lock, id) -- its process is dead, or asks when it hears again
    end
    -- Not before: its place says whether it hears. If this failed, the next release would
    -- find an owner that has gone, and its process would give the lock back.
    step_out(queue, deadlines, id, waiting)
    if not told then
      id, waiting = redis.call('lindex', queue, '0'), waiting - 1
    end
  else
    -- prelude: first redisson

    local now, kept = milliseconds(time), nil
    id, kept = first(queue, deadlines, now, wake_evicted(publish, channel))
    alive, waiting = id, redis.call('llen', queue)
    if id and not inbox_of(id) then
      -- Offered to a waiter of Redisson, which has no longer than ours to take it, if others want it: who of
      -- Redisson's comes behind it counts from its time.
      if (me or waiting > 1) and kept > now + 5000 then
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
