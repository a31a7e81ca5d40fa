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
-- ARGV[5]  permits: the ids of the permits of the claim, one behind the other
-- ARGV[6]  idle: optional: for how many milliseconds the two keys of a semaphore that is not used are kept
--
-- Returns 0          granted
--         {0, what, ttl, now, foreign, there}
--                    not granted, as lock_acquire.lua says it. what is 5 if there are fewer permits than the claim is for: it stands
--                    in no queue then. ttl: in how many milliseconds the first permit ends, -1 if none does within a day. there: how
--                    many permits there are
--         {-1, key, text}
--                    one of the keys holds something else than its kind; text says what
--         {-2}       this owner id was given up: a late copy of the request

-- include: permit queue place grant keys

-- The common case: enough permits are available, and no one waits.
local wanted, now, failure = split(permits), server_time(), nil
local free = redis.call('exists', queue, tombstones) == 0 and number_of(available)
if free and free >= #wanted then
  failure = give(available, held, wanted, now, lease, idle)
  if not is_wrong_type(failure) then
    return failure or 0
  end
end

local buried = redis.pcall('zscore', tombstones, id)
if type(buried) == 'table' then
  return wrong(tombstones, buried)
elseif buried then
  return {@ACQUIRE_BURIED@}
end
local count, members = count_of(available, held, total, idle)
if not count then
  return members
end
local there = count + members
local o = line_of(available, queue, deadlines, held, now)
local place, deadline, offer = place_of(wait, now)
o.claim, o.turn, o.counted, o.publish = offer_of(offer)
o.me = id
local next, kept, key = first(queue, deadlines, now, @DEAD@)
if key and not next then
  return wrong(key, kept)
end
local what = next and kept <= now and @STATE_CROWDED@
local ends = redis.call('zscore', held, wanted[1]) -- an earlier copy of this request, or a release, has made it so
local mine = ends and tonumber(ends) > now or not next and o.room(id)
if not mine and next and not what and place ~= 'new' then -- a caller that waits already, or does not wait, sees to the queue
  local _, _, reached = let_in(o)
  what = o.crowded and @STATE_CROWDED@
  mine = reached or not what and redis.call('exists', queue) == 0 and o.room(id)
elseif not mine and next and not what and o.room(next) then
  what = @STATE_OPEN@ -- it was left open for Redisson, or a permit has ended: the waiters already see to it
end
if not mine then
  local too_many, ttl, foreign = #wanted > there, next_end(held, now)
  if too_many then
    leave(queue, deadlines, id)
  end
  failure = stand(available, queue, deadlines, id, too_many and 'none' or place, deadline)
  what = too_many and @STATE_TOO_MANY@ or what or @STATE_HELD@
  return failure or {@ACQUIRE_HELD@, what, what == @STATE_OPEN@ and @OPEN_AGAIN@ or ttl, now, foreign, there}
end
leave(queue, deadlines, id)
return give(available, held, wanted, now, lease, idle) or 0
