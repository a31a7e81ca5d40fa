-- queue.lua: prelude of the scripts that know a queue of waiters.
--
-- A queue is a list of ids, the first of which is next, and a zset: id -> until when its
-- place is kept, in milliseconds of server time. For a mutex these are the two keys of
-- Redisson's fair lock, in which its waiters and Holdfast's stand in one line; for a
-- read-write lock they are two keys of Holdfast. An id of Holdfast is
-- hf-<manager>:<number>, with :write behind it for a writer. Its place is kept for a
-- few seconds from each time that its process asks; a half in the time says that
-- the process hears no inbox at present and has to find its grant by asking.

-- milliseconds returns the number for a reply of TIME.
local function milliseconds(time)
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- server_time returns milliseconds, and what TIME said.
local function server_time()
  local time = redis.call('time')
  return milliseconds(time), time
end

-- inbox_of returns the channel of the manager that made an id and the id's number;
-- nil for one of Redisson's.
local function inbox_of(id)
  local uuid, number = string.match(id, '^hf%-([%x%-]+):(%d+)')
  if uuid then
    return 'holdfast_inbox:' .. uuid, number
  end
end
