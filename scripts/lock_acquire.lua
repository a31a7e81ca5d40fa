-- lock_acquire.lua: take a mutex or a fair lock for one owner id, or stand in its queue.
--
-- An owner id belongs to one hold and is never used again. So an owner that is found in the lock is that of an earlier copy of this
-- request, or a release has granted it the lock.
--
-- KEYS[1]  lock: hash, owner id -> hold count
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  tombstones: zset of owner ids that were given up
-- KEYS[5]  counter: of fencing tokens; only with fencing, as ARGV[4] and ARGV[5]
-- ARGV[1]  owner: its id
-- ARGV[2]  lease: TTL, milliseconds
-- ARGV[3]  wait: how to wait, see lib/place.lua; and how to grant the lock to another waiter, see
--          lib/grant.lua: "<place> <inbox> <patience> <claim> <turn> <counted> <publish>"
-- ARGV[4]  tokens: how many fencing tokens to reserve
-- ARGV[5]  seen: the highest token that the caller has seen
--
-- Returns token      granted; the last of the reserved tokens, or 0 without fencing
--         {0, what, ttl, now, foreign}
--                    not granted. what: 0, another owner has it; 1, it is free, but others are before the caller; 2, it is free and
--                    offered to a waiter of Redisson; 3, it is free, and so many before the caller are dead that the next request
--                    has to remove the rest; 4, another owner has it, whose process may only keep it for its own next caller, and
--                    no other waits: it can be asked. ttl: for how many milliseconds the other owner has it, -1 if without TTL, no
--                    more than @OFFERED_AGAIN@ if Redisson has it and is next as well; of a free lock when to ask again. now: the
--                    server's time, milliseconds. foreign: 1 if the owner, or the waiter that comes before the caller, is not
--                    Holdfast's; and for every free lock
--         {-1, key, text}
--                    one of the keys holds something else than its kind; text says what
--         {-2}       this owner id was given up: a late copy of the request

-- include: queue place grant redisson fence keys

-- One command answers the common case: no holder, no tombstone, no queue.
local call = redis.call
local present = call('exists', lock, tombstones, queue)
if present == 0 and not tokens then
  call('hset', lock, owner, '1')
  if redis.pcall('pexpire', lock, lease) == 1 then
    return 0
  end
end
if present == 0 then -- with fencing, or its TTL was refused
  local token, said = reserve(counter, tokens, seen)
  return token and (put(lock, owner, lease) or token) or no_token(counter, said)
end

local fields = redis.pcall('hlen', lock) -- before looking: it may be an application's hash of millions
if type(fields) == 'table' or fields > 1 then -- a read-write lock has two fields or more
  return wrong(lock, fields)
end
local holder = fields == 1 and call('hkeys', lock)[1]
local buried = present > fields and redis.pcall('zscore', tombstones, owner)
if type(buried) == 'table' then
  return wrong(tombstones, buried)
elseif buried then
  return {@ACQUIRE_BURIED@}
end

local now = server_time()
local place, deadline, offer = place_of(wait, now)
local ttl, foreign, hears
if holder and holder ~= owner then
  ttl, foreign, hears = call('pttl', lock), not inbox_of(holder), string.find(holder, @HEARS@)
  local lingers = hears and string.find(holder, @LINGERS@)
  if foreign and ttl < 0 and kind_of(lock) == 'other' then -- an application's hash: no release of it will come
    return wrong(lock)
  end
  local next = foreign and head(queue)
  if next and not inbox_of(next) and (ttl < 0 or ttl > @OFFERED_AGAIN@) then
    -- A waiter of Redisson that gives up when a release has just notified it sends no message: only a request finds out.
    ttl = @OFFERED_AGAIN@
  end
  if place == 'none' then
    return not_master(lock) or {@ACQUIRE_HELD@, lingers and state_beside(queue, owner) or @STATE_HELD@, ttl, now, foreign and 1 or 0}
  end
  local failure, behind = stand(lock, queue, deadlines, owner, place, deadline)
  if failure then
    return failure
  elseif hears then
    notify(holder, 'w', place == 'ask' and owner)
  end
  return {@ACQUIRE_HELD@, lingers and state_beside(queue, owner) or @STATE_HELD@, ttl, now, (behind or foreign) and 1 or 0}
end

if holder then -- an earlier copy of this request, or a release, has made it so
  local token, said = reserve(counter, tokens, seen)
  local left = call('pttl', lock)
  if not token then
    return no_token(counter, said)
  elseif left > tonumber(lease) then
    return not_master(lock) or token
  end
  said = redis.pcall('pexpire', lock, lease)
  if said == 1 then
    return token
  elseif left < 0 then
    take_back(lock, owner)
  end
  return no_ttl(said)
end

-- It is free, and others may be next.
local o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, me = owner, add = put, remove = take_back, leave_to = leave_to_redisson}
o.claim, o.turn, o.counted, o.publish = offer_of(offer)
o.channel = channel_of(queue)
local id, kept, key = first(queue, deadlines, now, @DEAD@, o.publish, o.channel)
if key and not id then
  return wrong(key, kept)
end
local what, granted = nil, 0
if id and kept > now and (id == owner or place ~= 'new') then
  granted = let_in(o)
end
ttl, foreign = 1, granted == 0
if id and kept <= now or o.crowded then
  what = @STATE_CROWDED@
elseif granted > 0 then
  what, ttl = @STATE_HELD@, call('pttl', lock)
elseif o.offered then
  what, ttl = @STATE_OFFERED@, @OFFERED_AGAIN@
elseif id and id ~= owner and place == 'new' then
  -- It has just been left open for Redisson, or has expired: the waiters already see to it.
  what, ttl = @STATE_OPEN@, @OPEN_AGAIN@
end
if what then
  local failure, behind = stand(lock, queue, deadlines, owner, place, deadline)
  return failure or {@ACQUIRE_HELD@, what, ttl, now, (behind or foreign) and 1 or 0}
end
leave(queue, deadlines, owner)
local token, said = reserve(counter, tokens, seen)
return token and (put(lock, owner, lease) or token) or no_token(counter, said)
