-- lock.lua: prelude of the scripts that may find a mutex or a fair lock free. It is no
-- function but the hand-off itself, which all wait for, and needs none where all goes
-- well: with functions, and a table for what they need, a release took the server a quarter
-- longer, and a twentieth longer with only those that it would share with others. So it has copies
-- of them, which a test compares with the functions: "copy of" one has all of it, "copy from" one has a part.
--
-- It gives the lock to the first live waiter, id in the beginning. It uses of the script
--   lock, queue, deadlines  keys
--   publish                 how Redisson's waiters are told
--   counter                 the key of the fencing counter; nil without fencing
--   time                    the reply of TIME
--   claim, turn, counted    of the grant, see prelude/offer.lua
--   manager                 that of the caller's id, see prelude/queue.lua; nil: a message is not its reply
--   more                    whether others stand in the queue behind id
--   me                      the caller's own id, if it waits
-- and sets told
--   nil      the lock is still free: no other waiter is there (me, if it was the first, has been
--            taken out of the queue), or it could be given no TTL
--   message  granted to a waiter of manager
--   0        granted to another waiter of Holdfast, or left free for one of Redisson
--   1        the lock is still free: so many in front are dead that one script does not remove them all

local told, alive, rest = nil, nil, @DEAD@
while id and not told do
  -- copy from inbox_of (prelude/queue.lua)
  local uuid, number = string.match(id, '^hf%-([%x%-]+):(%d+)')
  -- end
  -- Mostly no place is overdue, and that is one command and no number to read: with ZSCORE
  -- and a comparison this took the server a fifth longer. A place that ends in
  -- this second counts as kept until the second is over.
  if uuid and (id == alive or redis.pcall('zcount', deadlines, '-inf', '(' .. time[1] .. '000') == 0) then
    if id ~= me then
      -- copy of token_for (prelude/grant.lua)
      local token = '0'
      if counter then
        token = redis.pcall('incrby', counter, '@TOKENS@')
        token = type(token) == 'number' and token < @TOKEN_END@ and string.format('%.0f', token) or '0'
      end
      -- end
      redis.call('hset', lock, id, '1')
      if redis.pcall('pexpire', lock, claim) ~= 1 then
        -- prelude: ttl

        take_back(lock, id)
        break
      end
      -- copy of message_of (prelude/grant.lua)
      local message = 'g ' .. number .. ' ' .. claim .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. turn .. (more and ' 1 ' or ' 0 ') .. token
      -- end
      if uuid == manager then
        told = message
      else -- as grant in prelude/grant.lua
        local inbox = 'holdfast_inbox:' .. uuid
        -- copy of unheard (prelude/grant.lua)
        local dead = counted == '1' and redis.pcall('pubsub', 'numsub', inbox)[2] == 0
        -- end
        if dead then
          -- prelude: dead

          dead = known_dead(deadlines, id)
        end
        if dead then
          redis.call('hdel', lock, id) -- its process is dead, or asks when it hears again
        else
          redis.pcall('publish', inbox, message)
          told = 0
        end
      end
    end
    -- Not before: its place says whether it hears. If this failed, the next release would
    -- find an owner that has gone, and its process would give the lock back.
    -- copy of step_out (prelude/step_out.lua)
    if more then
      redis.call('lpop', queue)
      redis.call('zrem', deadlines, id)
    else
      redis.call('del', queue, deadlines)
    end
    -- end
    if id == me then
      break
    end
    if not told then
      local next = redis.call('lrange', queue, '0', '1')
      id, more, rest = next[1], next[2], rest - @DEAD_PROCESS@
      if id and rest <= 0 then
        told = 1
      end
    end
  else
    -- prelude: queue step_out first redisson

    local now, kept, removed = milliseconds(time), nil, nil
    local channel = 'redisson_lock__channel' .. string.sub(queue, #'redisson_lock_queue' + 1)
    id, kept, removed = first(queue, deadlines, now, wake_evicted(publish, channel), math.max(rest, 1))
    alive, more, rest = id, redis.call('llen', queue) > 1, rest - (id and removed or 0)
    if id and kept <= now then
      told = 1
    elseif id and not inbox_of(id) then
      -- Offered to a waiter of Redisson, which has no longer than Holdfast's to take it, if others want it: who of
      -- Redisson's comes behind it counts from its time.
      if (me or more) and kept > now + @REDISSON_PLACE@ then
        redis.call('zadd', deadlines, now + @REDISSON_PLACE@, id)
      end
      tell(publish, channel .. ':' .. id, '0')
      -- Its release will be announced on a channel that Holdfast's waiters do not listen to yet.
      for _, other in ipairs(redis.call('lrange', queue, '1', '@BEHIND@')) do
        local inbox, its = inbox_of(other)
        if inbox then
          if other ~= me then
            redis.pcall('publish', inbox, 'o ' .. its)
          end
          break
        end
      end
      told = 0
    end
  end
end
