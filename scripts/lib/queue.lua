-- queue.lua: library of the queue of waiters: its ids, its time, which id is next, and how waiters leave it.
--
-- A queue is a list of ids, the first of which is next, and a zset: id -> until when its place is kept, in milliseconds of server
-- time. A mutex or fair lock has the two keys of Redisson's fair lock, in which waiters of both stand in one line. An id of Holdfast
-- is hf-<manager>:<number>, with :write behind it for a writer. Its place is kept for a few seconds from each time that its process
-- asks. A half in the time says that the process is deaf: it hears no inbox, and has to find its grant by asking.

-- include: redisson

-- server_time returns milliseconds, and what TIME said.
local function server_time()
  local time = redis.call('time')
  return time[1] * 1000 + math.floor(time[2] / 1000), time
end

-- inbox_of returns the channel of the manager that made an id, and the id's number; nil for one of Redisson's.
local function inbox_of(id)
  local uuid, number = string.match(id, '^hf%-([%x%-]+):(%d+)')
  if uuid then
    return 'holdfast_inbox:' .. uuid, number
  end
end

-- notify sends a message to the process of id. It reports whether there is an id, and it is Holdfast's.
--   o  ask again: soon, or when the lock has ended, rest milliseconds from now
--   w  others want the lock that this id holds: its process is to know, or to give it up; with rest, answer the TryLock of that id
local function notify(id, message, rest)
  local inbox, number = inbox_of(id or '')
  if inbox then
    redis.pcall('publish', inbox, message .. ' ' .. number .. (rest and ' ' .. rest or ''))
  end
  return inbox ~= nil
end

-- notify_all has the waiters in front ask again, as notify does.
local function notify_all(queue, rest)
  for _, id in ipairs(redis.pcall('lrange', queue, '0', '@FORCED@')) do
    notify(id, 'o', rest)
  end
end

-- head returns the first id of the queue; nil if there is none, or the key is no list.
local function head(queue)
  local id = redis.pcall('lindex', queue, '0')
  return type(id) == 'string' and id or nil
end

-- notify_next tells the next waiter when the lock ends, if it is not the one that was first: only the first is told of an earlier end.
local function notify_next(lock, queue, was)
  local next = head(queue)
  local left = next and next ~= was and redis.call('pttl', lock)
  if left and left >= 0 then
    notify(next, 'o', math.max(left, 1))
  end
end

-- first returns the next waiter, until when its place is kept, and how many in front it has removed, because their time is over: most
-- of them at most. If the time of the next is over as well, there are more. With publish and channel it tells fair waiters of
-- Redisson that they are removed: they may be alive, and would sleep for long. If one of the two keys is none of its kind, it returns
-- nil, what Redis said, and that key.
local function first(queue, deadlines, now, most, publish, channel)
  local gone, places, id, kept = {}, {redis.pcall('lindex', queue, '0')}, nil, nil
  repeat
    id = places[#gone + 1]
    if type(id) == 'table' then
      return nil, id, queue
    elseif not id then
      break
    end
    kept = redis.pcall('zscore', deadlines, id)
    if type(kept) == 'table' then
      return nil, kept, deadlines
    end
    kept = id == '' and 0 or tonumber(kept or nil) -- '': see leave.lua
    if not kept then -- Redisson would wait for it forever
      local left = redis.call('pttl', deadlines) -- before the write: see put in rights.lua
      kept = now + @REDISSON_PLACE@
      redis.call('zadd', deadlines, kept, id)
      if left < 0 then -- it may be new
        redis.pcall('pexpire', deadlines, '@QUEUE_TTL@')
      end
    end
    local over = kept <= now and #gone < most
    if over then
      gone[#gone + 1] = id
      places = #gone > 1 and places or redis.call('lrange', queue, '0', most)
    end
  until not over
  if #gone > 0 and not id then
    redis.call('del', queue, deadlines)
  elseif #gone > 0 then
    for _ = 1, #gone do
      redis.call('lpop', queue)
    end
    redis.call('zrem', deadlines, unpack(gone))
  end
  for _, other in ipairs(publish and gone or {}) do
    if not inbox_of(other) then
      tell(publish, channel .. ':' .. other, '0')
    end
  end
  if id then
    return id, kept, #gone
  end
end

-- step_out takes id, which is the first, out of the queue, in which there may be more.
local function step_out(queue, deadlines, id, more)
  if more then
    redis.call('lpop', queue)
    redis.call('zrem', deadlines, id)
  else
    redis.call('del', queue, deadlines)
  end
end

-- leave takes id out of the queue, even if another client has deleted the zset.
local function leave(queue, deadlines, id)
  local left = redis.pcall('zrem', deadlines, id) == 1
  local waiting = not left and redis.pcall('llen', queue)
  if left or waiting ~= 0 and waiting ~= redis.pcall('zcount', deadlines, '-inf', '+inf') then
    redis.pcall('lrem', queue, '0', id)
  end
end
