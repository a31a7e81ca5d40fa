-- permit_acquire.lua: take permits of a semaphore, all that a claim is for or none, or stand in its queue.
--
-- KEYS[1]  available: how many permits are: number
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  held: the permits that are not: zset, see lib/permit.lua
-- KEYS[5]  tombstones: zset of owner ids that were given up
-- ARGV[1]  id: the owner id of the claim
-- ARGV[2]  lease: TTL, milliseconds
-- ARGV[3]  wait: how to wait, as in lock_acquire.lua
-- ARGV[4]  total: how many permits there are, if Redis does not know
-- ARGV[5]  idle: optional: for how many milliseconds the two keys of a semaphore that is not used are kept
--
-- Returns n          granted; how many permits there are
--         {0, what, ttl, now, foreign}
--                    not granted, as lock_acquire.lua says it. what is 5 if there are fewer permits than the claim is for: it stands
--                    in no queue then. ttl: in how many milliseconds the first permit ends, -1 if none does within a day
--         {-1, key, text}
--                    one of the keys holds something else than its kind; text says what
--         {-2}       this owner id was given up: a late copy of the request

-- include: permit queue place grant answer

local now = server_time()
local buried = redis.pcall('zscore', tombstones, id)
if type(buried) == 'table' then
  return wrong(tombstones, buried)
elseif buried then
  return {@ACQUIRE_BURIED@}
end
local count, members = count_of(available, held, total)
if not count then
  return members
end
local n, there = size_of(id), count + members
local has = redis.call('zscore', held, permits_of(id)[1]) -- an earlier copy of this request, or a release, has made it so
local o = line_of(available, queue, deadlines, held, now)
local place, deadline, offer = place_of(wait, now)
o.claim, o.turn, o.counted, o.publish = offer_of(offer)
o.me = id
local next, kept, key = first(queue, deadlines, now, @DEAD@)
if key and not next then
  return wrong(key, kept)
end
local what = next and kept <= now and @STATE_CROWDED@
local mine = has or not next and o.room(id)
if not mine and next and not what and place ~= 'new' then -- a caller that waits already, or does not wait, sees to the queue
  local _, _, reached = let_in(o)
  what = o.crowded and @STATE_CROWDED@
  mine = reached or not what and redis.call('exists', queue) == 0 and o.room(id)
elseif not mine and next and not what and o.room(next) then
  what = @STATE_OPEN@ -- it was left open for Redisson, or a permit has ended: the waiters already see to it
end
if not mine and n > there then
  leave(queue, deadlines, id)
  return not_master(available) or {@ACQUIRE_HELD@, @STATE_TOO_MANY@, -1, now, 0}
elseif not mine then
  local failure = stand(available, queue, deadlines, id, place, deadline)
  local ttl, foreign = next_end(held, now)
  return failure or {@ACQUIRE_HELD@, what or @STATE_HELD@, what == @STATE_OPEN@ and @OPEN_AGAIN@ or ttl, now, foreign}
end
leave(queue, deadlines, id)
return give(available, held, id, now, lease, idle) or math.max(there, 0)
