-- stand.lua: prelude of the scripts in which waiters take and keep places; behind queue.lua.

-- A waiter of Redisson has a time of its own in the zset: for as long as it wants to wait,
-- behind the one before it. When it gets the lock, or gives up, what it wanted to wait is taken off
-- the times of all behind it. So ours that stand behind one of Redisson's are kept for their
-- patience beyond its time, as Redisson's next one would be.

-- foreign_before returns a function that tells whether one of Redisson's stands before an id. It reads
-- the queue when it is asked for the first time.
local function foreign_before(queue)
  local before
  return function(id)
    if not before then
      before = {}
      local foreign = false
      for _, other in ipairs(redis.call('lrange', queue, '0', '-1')) do
        before[other] = foreign
        foreign = foreign or not inbox_of(other)
      end
    end
    return before[id]
  end
end

-- kept_until returns until when id, which stands in the queue until old, is to be kept now, and
-- whether one of Redisson's stands before it. A time beyond the usual one is left as it is while that is so.
local function kept_until(old, now, id, patience, behind)
  local wanted = now + patience
  if tonumber(old) > wanted and behind(id) then
    return math.floor(old) + wanted % 1, true
  end
  return wanted, false
end

-- beyond returns how much later than now the place of who comes behind last begins to count, and
-- whether one of Redisson's stands before it. Of ours last has passed that on.
local function beyond(deadlines, now, patience, last)
  local left = math.floor(redis.call('zscore', deadlines, last) or 0) - now
  if not inbox_of(last) then
    -- One that has been offered the lock has five seconds left (prelude/lock.lua), whatever it
    -- wanted to wait; five minutes are Redisson's default.
    return left > 5000 and left or 300000, true
  end
  left = left - math.floor(patience)
  return math.max(left, 0), left > 0
end

-- keep_keys gives the two keys, which may be fresh, a TTL, and reports whether it could: half a
-- day to a day. It only ends queues whose processes have all died, and Redisson's waiters, who give
-- none, may be left alone with it.
local function keep_keys(queue, deadlines, fresh)
  return not fresh and redis.call('pttl', queue) >= 43200000
    or redis.pcall('pexpire', queue, '86400000') == 1 and redis.pcall('pexpire', deadlines, '86400000') == 1
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
-- several ids passes the result of foreign_before.
local function stand(queue, deadlines, now, id, patience, behind)
  local fresh, foreign = false, false
  local asked, kept = math.abs(patience), nil
  local old = redis.call('zscore', deadlines, id)
  if old then
    kept, foreign = kept_until(old, now, id, asked, behind or foreign_before(queue))
  elseif patience < 0 then
    reinstate(queue, id)
    kept = now + asked
  else
    local last = redis.call('lindex', queue, '-1')
    fresh = redis.call('rpush', queue, id) == 1
    local more = 0
    if last then
      more, foreign = beyond(deadlines, now, asked, last)
    end
    kept = now + asked + more
  end
  local set = redis.pcall('zadd', deadlines, kept, id)
  if type(set) == 'table' or not keep_keys(queue, deadlines, fresh) then
    -- An ACL that forbids it: never leave a key without TTL.
    redis.call('lrem', queue, '1', id)
    redis.pcall('zrem', deadlines, id)
    return nil, redis.error_reply('HOLDFAST cannot keep a place in the queue')
  end
  return foreign
end
