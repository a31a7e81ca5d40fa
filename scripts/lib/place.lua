-- place.lua: library of how a caller waits: taking and keeping a place in the queue.
--
-- How a caller waits is "<place> <inbox> <patience>":
--
--   place     none: it does not wait; new: it wants a place, or keeps the one that it has; same: it had a place, and
--             returns to the front if that was taken away meanwhile; ask: it does not wait but for the answer of a holder that
--             may linger, and has a place meanwhile
--   inbox     heard, or deaf: its process hears none, and has to find its grant by asking
--   patience  for how many milliseconds the place is kept
--
-- In an acquire the offer for a grant to another waiter is behind it, see grant.lua.

-- include: queue keys

-- place_of takes it apart. It returns the place; until when that is to be kept, as the zset says it; and what is behind.
local function place_of(wait, now)
  local place, inbox, patience, offer = string.match(wait, '^(%l+) (%l+) (%d+) ?(.*)$')
  return place, now + patience + (inbox == 'deaf' and @DEAF@ or 0), offer
end

-- kept_until returns until when the place of id is to be kept, which is kept or later, and whether one of Redisson's stands before it.
-- A waiter of Redisson that gets the lock, or gives up, takes what it wanted to wait off all times behind it in the zset: 300 s by
-- default. So Holdfast's places are kept for so much longer for each before them. One that wants to wait for longer evicts Holdfast's,
-- which then return to the front. The queue, which may be long, is only read if time shows that a waiter was given more than its
-- patience: its own of before, or that of the last waiter when it came; and once for all ids that come with the same table before.
local function kept_until(queue, kept, id, time, before)
  if tonumber(time) <= kept then
    return kept, false
  end
  if not before.all then
    local ids, all = {}, 0
    for _, other in ipairs(redis.call('lrange', queue, '0', '-1')) do
      ids[other] = all
      all = inbox_of(other) and all or all + 1
    end
    before.ids, before.all = ids, all
  end
  local n = before.ids[id] or before.all
  return kept + n * @REDISSON_WAIT@, n > 0
end

-- keep_keys gives the two keys, which may be fresh, a TTL of half a day to a day, and reports whether it could. It only ends queues
-- whose processes have all died, and Redisson's waiters, who give none, may be left alone with it.
local function keep_keys(queue, deadlines, fresh)
  local left = not fresh and redis.pcall('pttl', queue)
  return type(left) == 'number' and left >= @QUEUE_TTL_LEFT@
    or redis.pcall('pexpire', queue, '@QUEUE_TTL@') == 1 and redis.pcall('pexpire', deadlines, '@QUEUE_TTL@') == 1
end

-- come_back puts those of ids that are not in the list in front of it. The ids are of one process, in the order of their numbers, and
-- so its places stay: a waiter of it with a lower number than one that comes back moves to a place further in front. So each waiter of
-- other processes is passed by no more than have come back. It reads the list once.
local function come_back(queue, ids)
  local last, prefix = ids[#ids], string.match(ids[1], '^[^:]+:')
  local from, away, standing = #prefix + 1, {}, {}
  local function waiter(id, at)
    return {id = id, number = tonumber(string.match(id, '^%d+', from)), at = at}
  end
  for _, id in ipairs(ids) do
    away[id] = true
  end
  for i, id in ipairs(redis.call('lrange', queue, '0', '-1')) do
    -- Mostly those who have come back before stand here, with numbers as long, and higher. Where a value is behind it, only the number says.
    if (#id ~= #last or id <= last or string.find(id, ':', from, true)) and string.sub(id, 1, from - 1) == prefix then
      standing[#standing + 1], away[id] = waiter(id, i - 1), nil
    end
  end
  local back = {}
  for _, id in ipairs(ids) do
    if away[id] then
      back[#back + 1] = waiter(id)
    end
  end
  local all, places, highest = {unpack(back)}, {}, back[#back]
  for _, other in ipairs(highest and standing or {}) do
    if other.number and other.number < highest.number then
      all[#all + 1], places[#places + 1] = other, other.at
    end
  end
  if #places > 0 then
    table.sort(all, function(a, b) return a.number < b.number end)
  end
  for i, at in ipairs(places) do
    if redis.pcall('lset', queue, at, all[#back + i].id).err then -- an ACL of an earlier version: they pass the others
      all = back
      break
    end
  end
  for i = #back, 1, -1 do
    redis.call('lpush', queue, all[i].id)
  end
end

-- listed returns which of a set of ids that have a time stand in the list, which a client may have deleted. It is read only where the
-- two keys differ in length.
local function listed(queue, deadlines, ids)
  if redis.call('zcount', deadlines, '-inf', '+inf') == redis.call('llen', queue) then
    return ids
  end
  local found = {}
  for _, id in ipairs(redis.call('lrange', queue, '0', '-1')) do
    found[id] = ids[id]
  end
  return found
end

-- stand puts id into the queue, or keeps its place, if it waits: place and kept are as from place_of. It returns nil, and whether a
-- waiter of Redisson stands before it; or an answer, if something is wrong. For several ids before is the same table, and back is true
-- if they have come back already.
local function stand(lock, queue, deadlines, id, place, kept, before, back)
  if place == 'none' then
    return not_master(lock)
  end
  local fresh, known = false, redis.pcall('zscore', deadlines, id)
  if type(known) == 'table' then
    return wrong(deadlines, known)
  end
  local time, last = known, redis.pcall('lindex', queue, '-1')
  if type(last) == 'table' then
    return wrong(queue, last)
  end
  if place == 'same' and (back or not (known and listed(queue, deadlines, {[id] = true})[id])) then
    if not back then
      come_back(queue, {id})
    end
    fresh = true -- one of the two keys may be
    if not known and kept % 1 == 0 and redis.pcall('pubsub', 'numsub', (inbox_of(id)))[2] == 0 then
      -- Its process hears an inbox, as it believes, but at another server: the master's name has moved.
      -- Taken for dead, it would be passed over again and again; deaf, it is granted the lock and asks.
      kept = kept + @DEAF@
    end
  elseif not known then
    local its = last and inbox_of(last) and redis.call('zscore', deadlines, last)
    fresh = redis.call('rpush', queue, id) == 1 or not its
    time = last and (its or math.huge)
  end
  local foreign
  kept, foreign = kept_until(queue, kept, id, time or 0, before or {})
  local set = redis.pcall('zadd', deadlines, kept, id)
  if type(set) == 'table' and known then
    return set -- out of memory, mostly: it still has the place that it had
  end
  if type(set) == 'table' or not keep_keys(queue, deadlines, fresh) then
    -- Refused, as by an ACL: the keys are never left without TTL.
    redis.call('lrem', queue, '1', id)
    redis.pcall('zrem', deadlines, id)
    return redis.error_reply('HOLDFAST cannot keep a place in the queue')
  end
  return nil, foreign
end

-- state_beside returns the state of a lock whose holders may all linger, for a caller with that id.
local function state_beside(queue, id)
  local next = redis.pcall('lindex', queue, '0')
  return (not next or next == id) and @STATE_LINGERS@ or @STATE_HELD@
end
