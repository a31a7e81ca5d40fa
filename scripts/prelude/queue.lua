-- queue.lua: prelude of the scripts that know a queue of waiters.
--
-- A queue is a list of ids, the first of which is next, and a zset: id -> until when its
-- place is kept, in milliseconds of server time. For a mutex these are the two keys of
-- Redisson's fair lock, in which its waiters and ours stand in one line; for a
-- read-write lock they are two keys of our own. An id of ours is
-- hf-<manager>:<number>, with :write behind it for a writer. Its place is kept for a
-- few seconds from each time that its process asks; a half in the time says that
-- the process hears no inbox at present and has to find its grant by asking.

local function milliseconds()
  local t = redis.call('time')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- tell sends a message to Redisson's waiters and returns how many clients heard it: with
-- publish or spublish, whichever publish says, but a server that does not know spublish
-- has no sharded channels, and then Redisson listens to plain ones.
local function tell(publish, channel, message)
  local heard = redis.pcall(publish, channel, message)
  if publish == 'spublish' and type(heard) == 'table' then
    heard = redis.pcall('publish', channel, message)
  end
  return type(heard) == 'number' and heard or 0 -- refused: that must not fail a release
end

-- listeners returns how many clients would hear tell.
local function listeners(publish, channel)
  local count = redis.pcall('pubsub', publish == 'spublish' and 'shardnumsub' or 'numsub', channel)
  if publish == 'spublish' and count.err then
    count = redis.pcall('pubsub', 'numsub', channel)
  end
  return count[2] or 0
end

-- deadlines_of names the zset that belongs to a list.
local function deadlines_of(queue)
  return (string.gsub(queue, '_queue', '_timeout', 1))
end

-- inbox_of returns the channel of the manager that made an id and the id's number;
-- nil for one of Redisson's.
local function inbox_of(id)
  local manager, number = string.match(id, '^hf%-([%x%-]+):(%d+)')
  if manager then
    return 'holdfast_inbox:' .. manager, number
  end
end

-- first returns who is next, until when that place is kept, and 1 if somebody stands
-- behind, else 0; after removing those in front whose time is over.
local function first(queue, deadlines, now)
  while true do
    local two = redis.call('lrange', queue, 0, 1)
    local id = two[1]
    if not id then
      return nil
    end
    local kept = redis.call('zscore', deadlines, id)
    if not kept then -- Redisson would wait for it for ever
      kept = now + 5000
      redis.call('zadd', deadlines, kept, id)
      redis.pcall('pexpire', deadlines, 600000)
    end
    if tonumber(kept) > now then
      return id, tonumber(kept), two[2] and 1 or 0
    end
    redis.call('lpop', queue)
    redis.call('zrem', deadlines, id)
  end
end

-- ahead returns what to add to the time of ids of ours that stand behind waiters of
-- Redisson, as a function of the id; one that is not in the queue is to be its last.
-- A waiter of Redisson that gets the lock takes its own patience, 300 s by default, off
-- every time in the zset; without the addition that would remove us.
local function ahead(queue, deadlines, now)
  local latest = redis.call('zrevrange', deadlines, 0, 0, 'withscores')[2]
  if not latest or tonumber(latest) < now + 150000 then
    return function() return 0 end -- nobody of Redisson's
  end
  local foreign, before = 0, {}
  for _, id in ipairs(redis.call('lrange', queue, 0, -1)) do
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
    or redis.pcall('pexpire', queue, 600000) == 1 and redis.pcall('pexpire', deadlines, 600000) == 1
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
    redis.call('lrem', queue, 1, id)
    redis.pcall('zrem', deadlines, id)
    return nil, redis.error_reply('HOLDFAST cannot keep a place in the queue')
  end
  return more > 0
end

-- leave takes id out of the queue.
local function leave(queue, deadlines, id)
  if redis.pcall('zrem', deadlines, id) == 1 then
    redis.pcall('lrem', queue, 1, id)
  end
end

-- bury leaves a tombstone for id, which refuses late copies of its acquire. It comes last:
-- Redis refuses a first write that needs memory when it has none, and none after it.
-- Where it refuses this one, it refuses a late acquire as well.
local function bury(tombstones, id, duration)
  local now = milliseconds()
  if redis.pcall('zadd', tombstones, now + duration, id) == 1 then
    if redis.pcall('pexpire', tombstones, duration) ~= 1 then
      redis.call('del', tombstones) -- an ACL that forbids it: never leave a key without TTL
    end
    redis.pcall('zremrangebyscore', tombstones, '-inf', now)
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
  local message = table.concat({'g', number, o.claim, o.now, o.turn + 1, others, token}, ' ')
  if o.manager and string.sub(id, 1, #o.manager) == o.manager then
    return message
  end
  local heard = redis.pcall('publish', inbox, message)
  return heard ~= 0 or kept % 1 ~= 0 or not o.counted
end

-- let_redisson_in reports whether this release is to be an open one: after every 16th
-- grant in a row, if somebody is subscribed to Redisson's channel, which ours are not
-- while one of us holds the lock. The next of ours is told, to ask again soon.
local function let_redisson_in(o)
  if o.turn < 16 then
    return false
  end
  if listeners(o.publish, o.channel) == 0 then
    o.turn = 0 -- to look again after 16 more
    return false
  end
  local inbox, number = inbox_of(redis.call('lindex', o.queue, 0))
  if inbox then
    redis.pcall('publish', inbox, 'o ' .. number)
  end
  return true
end
