-- lock_acquire.lua: take a mutex or a fair lock for one owner id, or stand in its queue.
--
-- An owner id belongs to one hold of one process and is never used again, so an
-- owner that is found in the lock is this same request, executed before, or one that
-- a release has granted.
--
-- KEYS[1]  lock: hash, owner id -> hold count
-- KEYS[2]  queue: list of waiters, see prelude/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  tombstones: zset of owner ids that were given up
-- KEYS[5]  counter: of fencing tokens; only with fencing, as ARGV[4] and ARGV[5]
-- ARGV[1]  owner: its id
-- ARGV[2]  lease: TTL, milliseconds
-- ARGV[3]  wait: how to wait, see prelude/place.lua; and how to grant the lock to another waiter, see
--          prelude/offer.lua: "<place> <inbox> <patience> <claim> <turn> <counted> <publish>"
-- ARGV[4]  tokens: how many fencing tokens to reserve
-- ARGV[5]  seen: the highest token that the caller has seen
--
-- Returns token      granted; the last of the reserved tokens, or 0 without fencing
--         {0, what, ttl, now, foreign}
--                    not granted. what: 0, another owner has it; 1, it is free, but others are
--                    before the caller; 2, it is free and offered to a waiter of Redisson; 3, it is free, and so many
--                    before the caller are dead that the next request has to remove the rest; 4, another owner has
--                    it, whose process may only keep it for its own next caller, and no other waits: it can be asked. ttl:
--                    for how many milliseconds the other owner has it, -1 if without TTL, no more
--                    than @OFFERED_AGAIN@ if Redisson has it and is next as well; of a free lock when to ask
--                    again. now: the server's time, milliseconds. foreign: 1 if the owner, or the
--                    waiter that comes before the caller, is not Holdfast's; and for every free lock
--         {-1, key, text}
--                    one of the keys holds something else than its kind; text says what
--         {-2}       this owner id was given up: a late copy of the request

-- One command answers the common case: no holder, no tombstone, no queue.
-- names: lock queue tombstones owner
local call, token, mine = redis.call, 0, false
local present = call('exists', lock, tombstones, queue)
if present > 0 then
  local fields = redis.pcall('hlen', lock) -- before looking: it may be an application's hash of millions
  -- A read-write lock has two fields or more.
  if type(fields) == 'table' or fields > 1 then
    -- prelude: wrong_type wrong

    return wrong(lock, fields)
  end
  local holder = fields == 1 and call('hkeys', lock)[1]
  local buried = present > fields and redis.pcall('zscore', tombstones, owner)
  if type(buried) == 'table' then
    -- prelude: wrong_type wrong

    return wrong(tombstones, buried)
  elseif buried then
    return {@ACQUIRE_BURIED@}
  end
  mine = holder == owner
  if not mine then
    -- prelude: queue place

    -- names: deadlines wait
    local now, time = server_time()
    local place, deadline, offer = place_of(wait, now)
    local what, ttl, foreign, lingers = @STATE_HELD@, nil, nil, nil
    if holder then
      ttl, foreign, lingers = call('pttl', lock), not inbox_of(holder), string.find(holder, @LINGERS@)
      local head = foreign and redis.pcall('lindex', queue, '0')
      if type(head) == 'string' and not inbox_of(head) and (ttl < 0 or ttl > @OFFERED_AGAIN@) then
        -- A waiter of Redisson that gives up when a release has just notified it sends no message:
        -- the lock is free then, and only a request finds out.
        ttl = @OFFERED_AGAIN@
      end
    else
      -- prelude: offer step_out first redisson

      local claim, turn, counted, publish = offer_of(offer)
      local evicted = wake_evicted(publish, 'redisson_lock__channel' .. string.sub(queue, #'redisson_lock_queue' + 1))
      local me, id, kept, key = owner, first(queue, deadlines, now, evicted)
      if not id and key then
        -- prelude: wrong_type wrong

        return wrong(key, kept)
      elseif id and kept <= now then
        what, ttl, foreign = @STATE_CROWDED@, 1, true
      elseif id and id ~= me and place == 'new' then
        -- A lock that is free although there are waiters has just been left open for
        -- Redisson, or has expired: the waiters already see to it.
        what, ttl, foreign = @STATE_OPEN@, @OPEN_AGAIN@, true
      else
        -- names: counter
        local manager, more = nil, call('llen', queue) > 1

        -- prelude: lock leave

        if told == 1 then
          what, ttl, foreign = @STATE_CROWDED@, 1, true
        elseif told then
          ttl = call('pttl', lock)
          if ttl == -2 then
            what, ttl, foreign = @STATE_OFFERED@, @OFFERED_AGAIN@, true
          end
        else
          leave(queue, deadlines, me)
        end
      end
    end
    if ttl then
      local failure, behind
      if place == 'none' then
        -- prelude: wrong_type master

        failure = not_master(lock)
      else
        -- prelude: stand

        failure, behind = stand(queue, deadlines, owner, place, deadline)
      end
      if failure then
        return failure
      end
      foreign = behind or foreign
      if lingers then
        -- prelude: want

        if place ~= 'none' then
          want(holder, place, owner)
        end
        what = state_beside(queue, owner)
      end
      return {@ACQUIRE_HELD@, what, ttl, now, foreign and 1 or 0}
    end
  end
end

-- The counter first: whatever fails from here on, a skipped token does no harm.
-- names: tokens lease
if tokens then
  -- names: counter seen

  -- prelude: fence

  local failure
  token, failure = reserve(counter, tokens, seen)
  if failure then
    return failure
  end
end

local left = mine and call('pttl', lock) or -1
if not mine then
  call('hset', lock, owner, '1')
elseif left > tonumber(lease) then
  -- prelude: wrong_type master

  return not_master(lock) or token
end
local expires = redis.pcall('pexpire', lock, lease)
if expires == 1 then
  return token
end

-- prelude: ttl

if left < 0 then
  take_back(lock, owner)
end
return no_ttl(expires)
