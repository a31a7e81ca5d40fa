-- permit_set.lua: say how many permits a semaphore has. Those that are held stay so: the number of the available ones can be below 0.
--
-- KEYS[1]  available: how many permits are: number
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  held: the permits that are not: zset, see lib/permit.lua
-- ARGV[1]  total: how many there are to be
-- ARGV[2]  publish: command that announces it: publish or spublish
-- ARGV[3]  offer: how to grant permits, as in lock_release.lua
-- ARGV[4]  idle: optional: for how many milliseconds a number that is new is kept
--
-- Returns  0  done
--          {-1, key, text}
--             one of the keys holds something else than its kind; text says what

-- include: permit queue grant redisson

local now = server_time()
local _, text = number_of(available)
if type(text) == 'string' then
  redis.call('del', available) -- it was damaged
end
local count, members = count_of(available, held, total, idle)
if not count then
  return members
end
collect(available, held, now)
count = redis.call('incrby', available, total - count - members)
if head(queue) then
  local o = line_of(available, queue, deadlines, held, now)
  o.claim, o.turn, o.counted = offer_of(offer)
  o.publish = publish
  let_in(o)
  count = number_of(available)
end
if count > 0 then
  tell(publish, channel_of(queue), count)
end
return 0
