-- lock.lua: prelude of the scripts of mutexes and fair locks; behind queue.lua,
-- redisson.lua and grant.lua.

-- channel_of names the channel of the lock that has this queue.
local function channel_of(queue)
  return (string.gsub(queue, 'queue', '_channel', 1))
end

-- hand_over gives the lock o.lock, which is free, to the first live waiter. The caller may
-- know o.next, who is the first, and o.last, who is the last. It returns
--   nil      nobody waits; o.me, if given, has been taken out of the queue as the first
--   message  granted to a waiter of o.manager
--   0        granted to another of ours, or left free for one of Redisson's
local function hand_over(o)
  local deadlines = deadlines_of(o.queue)
  while true do
    local id, kept = first(o.queue, deadlines, o.now, o.next)
    o.next = nil
    if not id then
      return nil
    end
    if not inbox_of(id) then
      -- Offered to a waiter of Redisson, which has no longer than ours to take it.
      if kept > o.now + 5000 then
        redis.call('zadd', deadlines, o.now + 5000, id)
      end
      tell(o.publish, o.channel .. ':' .. id, '0')
      -- Its release will be told on a channel that ours do not listen to yet.
      for _, other in ipairs(redis.call('lrange', o.queue, '1', '8')) do
        local inbox, number = inbox_of(other)
        if inbox then
          if other ~= o.me then
            redis.pcall('publish', inbox, 'o ' .. number)
          end
          break
        end
      end
      return 0
    end
    local others = step_out(o.queue, deadlines, id, o.last and o.last ~= id)
    if id == o.me then
      return nil
    end
    local token = o.counter and redis.pcall('incrby', o.counter, '128') or 0
    token = type(token) == 'number' and token or 0 -- it asks for one, and is told what is wrong
    redis.call('hset', o.lock, id, '1')
    local expires = redis.pcall('pexpire', o.lock, o.claim)
    if expires ~= 1 then
      redis.call('hdel', o.lock, id)
      return nil
    end
    local told = grant(o, id, kept, others, token)
    if told then
      return told == true and 0 or told
    end
    redis.call('hdel', o.lock, id) -- its process is dead, or asks when it hears again
  end
end
