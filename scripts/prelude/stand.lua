-- stand.lua: prelude of the scripts in which waiters take and keep places; behind queue.lua.

-- A waiter of Redisson that gets the lock, or gives up, takes what it wanted to wait off all times
-- behind it in the zset: 300 s by default. So the places of Holdfast's are kept for so much longer for each
-- of Redisson's before them, however long it wants to wait, which is not known: what is left of its own
-- time does not say. One that wants to wait for longer evicts Holdfast's, which then return to the front.

-- foreign_before returns a function that tells how many of Redisson's stand before an id; or in
-- the queue, if the id has come since it was read, which is when the function is called first.
local function foreign_before(queue)
  local before, all
  return function(id)
    if not before then
      before, all = {}, 0
      for _, other in ipairs(redis.call('lrange', queue, '0', '-1')) do
        before[other] = all
        all = inbox_of(other) and all or all + 1
      end
    end
    return before[id] or all
  end
end

-- kept_until returns until when the place of id is to be kept, which is kept or later, and whether one of Redisson's
-- stands before it. The queue, which may be long, is only read if a time shows that a waiter was given
-- more than its patience: its own of before, or that of the last waiter when it came.
local function kept_until(kept, id, time, behind)
  if tonumber(time) <= kept then
    return kept, false
  end
  local n = behind(id)
  return kept + n * @REDISSON_WAIT@, n > 0
end

-- keep_keys gives the two keys, which may be fresh, a TTL, and reports whether it could: half a
-- day to a day. It only ends queues whose processes have all died, and Redisson's waiters, who give
-- none, may be left alone with it.
local function keep_keys(queue, deadlines, fresh)
  local left = not fresh and redis.pcall('pttl', queue)
  return type(left) == 'number' and left >= @QUEUE_TTL_LEFT@
    or redis.pcall('pexpire', queue, '@QUEUE_TTL@') == 1 and redis.pcall('pexpire', deadlines, '@QUEUE_TTL@') == 1
end

-- come_back puts those of ids that are not in the list in front of it. The ids are of one process, in the order of
-- their numbers, and so its places stay: a waiter of it with a lower number than one that comes back moves to a place
-- further in front. So each waiter of other processes is passed by no more than have come back. It reads the list once,
-- however many come back.
local function come_back(queue, ids)
  local last, prefix = ids[#ids], string.match(ids[1], '^[^:]+:')
  local from, away, standing = #prefix + 1, {}, {}
  local function number_of(id)
    return tonumber(string.match(id, '^%d+', from))
  end
  for _, id in ipairs(ids) do
    away[id] = true
  end
  for i, id in ipairs(redis.call('lrange', queue, '0', '-1')) do
    -- Mostly those who have come back before stand here, with numbers as long, and higher.
    if (#id ~= #last or id <= last) and string.sub(id, 1, from - 1) == prefix then
      standing[#standing + 1], away[id] = {id = id, number = number_of(id), at = i - 1}, nil
    end
  end
  local back, highest = {}, nil
  for _, id in ipairs(ids) do
    if away[id] then
      highest = number_of(id)
      back[#back + 1] = {id = id, number = highest}
    end
  end
  local all, places = {unpack(back)}, {}
  for _, other in ipairs(#back > 0 and standing or {}) do
    if other.number and other.number < highest then
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

-- listed returns a function that tells whether an id that has a time stands in the list as well: a client
-- may have deleted that. It is read only where the two keys differ in length. ids is the set of those that are asked for.
local function listed(queue, deadlines, ids)
  if redis.call('zcount', deadlines, '-inf', '+inf') == redis.call('llen', queue) then
    return function() return true end
  end
  local found = {}
  for _, id in ipairs(redis.call('lrange', queue, '0', '-1')) do
    if ids[id] then
      found[id] = true
    end
  end
  return function(id) return found[id] end
end

-- stand puts id into the queue, or keeps its place: place and kept are as from place_of. One that returns to the front is
-- deaf if no process listens to its inbox. It returns nil, and whether a waiter of
-- Redisson stands before it; on failure the reply for the caller. A caller that has
-- several ids passes the result of foreign_before; and true if those have come back already, see come_back.
local function stand(queue, deadlines, id, place, kept, behind, back)
  local fresh, known = false, redis.pcall('zscore', deadlines, id)
  if type(known) == 'table' then
    -- prelude: wrong_type wrong

    return wrong(deadlines, known)
  end
  local time, last = known, redis.pcall('lindex', queue, '-1')
  if type(last) == 'table' then
    -- prelude: wrong_type wrong

    return wrong(queue, last)
  end
  if place == 'same' and (back or not (known and listed(queue, deadlines, {[id] = true})(id))) then
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
  kept, foreign = kept_until(kept, id, time or 0, behind or foreign_before(queue))
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
