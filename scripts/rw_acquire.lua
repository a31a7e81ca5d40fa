-- rw_acquire.lua: take a side of a read-write lock for one owner id, or stand in its queue. A waiting writer keeps new readers of
-- Holdfast out, not Redisson's.
--
-- KEYS[1]  lock: hash, see lib/rights.lua
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  right: the key that a reader's right ends with; a writer has none, so what follows is one place before
-- KEYS[5]  tombstones: zset of ids that were given up
-- KEYS[6]  counter: of fencing tokens; only with fencing, as ARGV[4] and ARGV[5]
-- ARGV[1]  id: the owner id, with :write behind it for the write side
-- ARGV[2]  lease: TTL, milliseconds
-- ARGV[3]  wait: how to wait, as in lock_acquire.lua
-- ARGV[4]  tokens: how many fencing tokens to reserve
-- ARGV[5]  seen: the highest token that the caller has seen
--
-- Returns what lock_acquire.lua does

-- include: queue place grant rights fence keys

if is_writer(id) then
  counter, tombstones, right = tombstones, right, nil -- in this order: miniredis assigns one after the other
end
if redis.call('exists', lock, tombstones, queue) == 0 then
  local token, said = reserve(counter, tokens, seen)
  return token and (put_side(lock, id, lease, right) or token) or no_token(counter, said)
end

local buried = redis.pcall('zscore', tombstones, id)
if not buried and is_writer(id) then -- it has been downgraded since, and may have been given up as a reader
  local reader = string.sub(id, 1, -7)
  buried = redis.call('zscore', tombstones, reader) or redis.pcall('hexists', lock, reader) == 1
end
local mode = redis.pcall('hget', lock, 'mode')
if type(buried) == 'table' then
  return wrong(tombstones, buried)
elseif mode and mode ~= 'read' and mode ~= 'write' or not mode and redis.call('exists', lock) == 1 then
  return wrong(lock, mode)
elseif buried then
  return {@ACQUIRE_BURIED@}
end

local o
if not mode or redis.call('hexists', lock, id) == 0 then
  -- A reader would join, and the last one to leave delete it.
  if mode == 'read' and kind_of(lock) == 'other' then
    return {@ACQUIRE_KIND@, lock, 'a hash'}
  end
  local now = server_time()
  local place, deadline, offer = place_of(wait, now)
  o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, me = id, sides = true, add = put_side, remove = remove_side}
  o.claim, o.turn, o.counted = offer_of(offer)
  local next, kept, key = first(queue, deadlines, now, @DEAD@)
  if key and not next then
    return wrong(key, kept)
  end
  local mine, crowded = not next, next and kept <= now
  if next and place ~= 'new' and not crowded then -- a caller that waits already, or does not wait, sees to the queue
    local _, _, reached = let_in(o)
    mode = redis.call('hget', lock, 'mode')
    mine, crowded = reached or not first(queue, deadlines, now, @DEAD@), o.crowded
  end
  if not mine or mode == 'write' or mode and is_writer(id) then
    local failure = stand(lock, queue, deadlines, id, place, deadline)
    if failure then
      return failure
    elseif not mode then
      return {@ACQUIRE_HELD@, crowded and @STATE_CROWDED@ or @STATE_OPEN@, crowded and 1 or @OPEN_AGAIN@, now, 1}
    end
    local foreign, all = 0, true
    for _, holder in ipairs(redis.call('hkeys', lock)) do
      local hears = string.find(holder, @HEARS@)
      if hears and place ~= 'none' then
        notify(holder, 'w', place == 'ask' and id)
      end
      all = all and (holder == 'mode' or hears and string.find(holder, @LINGERS@))
      if holder ~= 'mode' and not inbox_of(holder) then
        foreign = 1
      end
    end
    return {@ACQUIRE_HELD@, all and state_beside(queue, id) or @STATE_HELD@, redis.call('pttl', lock), now, foreign}
  end
  leave(queue, deadlines, id)
end

local token, said = reserve(counter, tokens, seen)
local failure = not token and no_token(counter, said) or put_side(lock, id, lease, right)
if o and not failure and not is_writer(id) then
  let_in(o) -- readers behind this one
end
return failure or token
