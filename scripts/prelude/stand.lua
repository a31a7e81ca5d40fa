-- stand.lua: prelude of the scripts in which waiters take and keep places; behind queue.lua.

-- ahead returns what to add to the time of ids of ours that stand behind waiters of
-- Redisson, as a function of the id; one that is not in the queue is to be its last.
-- A waiter of Redisson that gets the lock takes its own patience, 300 s by default, off
-- every time in the zset; without the addition that would remove us.
local function ahead(queue, deadlines, now)
  if redis.call('zcount', deadlines, string.format('%.0f', now + 150000), '+inf') == 0 then
    return function() return 0 end -- nobody of Redisson's
  end
  local foreign, before = 0, {}
  for _, id in ipairs(redis.call('lrange', queue, '0', '-1')) do
    if inbox_of(id) then
      before[id] = foreign * 300000
    else
      foreign = foreign + 1
    end
  end
  return function(id) return before[id] or foreign * 300000 end
end

-- keep_keys gives the two keys, which may be fresh, a TTL, and reports whether it could.
-- No waiter keeps its place for so long without asking again, so it only ends queues whose
-- processes have all died.
local function keep_keys(queue, deadlines, fresh)
  return not fresh and redis.call('pttl', queue) >= 300000
    or redis.pcall('pexpire', queue, '600000') == 1 and redis.pcall('pexpire', deadlines, '600000') == 1
end

-- reinstate puts id in front, behind those of its process that came before it.
local function reinstate(queue, id)
  local inbox, number = inbox_of(id)
  local i, before = 0, nil
  while true do
    local other = redis.call('lindex', queue, i)
    local its, earlier = inbox_of(other or '')
    if its ~= inbox or tonumber(earlier) > tonumber(number) then
      break
    end
    i, before = i + 1, other
  end
  if before then
    redis.call('linsert', queue, 'after', before, id)
  else
    redis.call('lpush', queue, id)
  end
end

-- stand puts id into the queue, or keeps its place: for patience milliseconds; a
-- negative patience says that it stood there before, so that if its place was taken
-- away meanwhile, it returns to the front. It returns whether a waiter of Redisson
-- stands before it; on failure nil and the reply for the caller. A caller that has
-- several ids passes the result of ahead.
local function stand(queue, deadlines, now, id, patience, extra)
  local more, fresh = 0, false
  if redis.call('zscore', deadlines, id) then
    more = (extra or ahead(queue, deadlines, now))(id)
  elseif patience < 0 then
    reinstate(queue, id)
  else
    fresh = redis.call('rpush', queue, id) == 1
    more = fresh and 0 or (extra or ahead(queue, deadlines, now))(id)
  end
  local kept = redis.pcall('zadd', deadlines, now + math.abs(patience) + more, id)
  if type(kept) == 'table' or not keep_keys(queue, deadlines, fresh) then
    -- An ACL that forbids it: never leave a key without TTL.
    redis.call('lrem', queue, '1', id)
    redis.pcall('zrem', deadlines, id)
    return nil, redis.error_reply('HOLDFAST cannot keep a place in the queue')
  end
  return more > 0
end
