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

-- first returns who is next and until when that place is kept; after removing those in
-- front whose time is over. The caller may know the id of the one in front.
local function first(queue, deadlines, now, id)
  while true do
    id = id or redis.call('lindex', queue, '0')
    if not id then
      return nil
    end
    local kept = tonumber(redis.call('zscore', deadlines, id) or nil)
    if not kept then -- Redisson would wait for it for ever
      kept = now + 5000
      redis.call('zadd', deadlines, kept, id)
      redis.pcall('pexpire', deadlines, '600000')
    end
    if kept > now then
      return id, kept
    end
    step_out(queue, deadlines, id)
    id = nil
  end
end

-- grant tells the process of id, one of ours, that it has the lock: for claim
-- milliseconds, unless it renews that. It returns false if the process is known to be
-- deaf: PUBLISH reached nobody, on a server where that can be told, although the
-- process had an inbox when it last asked. The message is
--
--   g <number> <claim> <server time> <turn> <1 if others wait, else 0> <last token>
--
-- With manager it is returned instead of sent where the id is that manager's.
local function grant(o, id, kept, others, token)
  local inbox, number = inbox_of(id)
  local message = string.format('g %s %s %s %d %s %.0f', number, o.claim, digits(o.now), o.turn + 1, others, token)
  if o.manager and string.sub(id, 1, #o.manager) == o.manager then
    return message
  end
  local heard = redis.pcall('publish', inbox, message)
  return heard ~= 0 or kept % 1 ~= 0 or not o.counted
end
