-- rights.lua: library of the sides of a read-write lock and the rights of readers.
--
-- The lock is Redisson's hash: mode -> read or write, and a field per holder. The id of a reader is its owner id; a writer's has :write
-- behind it. A reader's right ends with a key of its own. The hash is to last as long as the longest right.

-- include: queue keys

-- is_writer reports whether an id is a writer's.
local function is_writer(id)
  return string.sub(id, -6) == ':write'
end

-- right_of names the key that a reader's n-th right ends with.
local function right_of(lock, reader, n)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. reader .. ':rwlock_timeout:' .. n
end

-- survivors looks at the rights of those who hold a lock in read mode, after a reader has gone, or a client has taken its TTL away. It
-- sets the TTL of the hash to that of the longest, or frees the lock if none is left: a reader that died leaves its field behind. It
-- removes such fields of Holdfast. A right without TTL, which another client has made so, gets that of the hash. It returns whether
-- one left is Redisson's, whose release notifies no waiter of Holdfast; and the TTL, if that is now shorter by more than a tenth of a
-- second: readers that come and go together differ by less, which is not worth a message.
local function survivors(lock)
  local longest, foreign, ttl = 0, false, redis.call('pttl', lock)
  local fields = redis.call('hgetall', lock)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' then
      local ours, alive = inbox_of(fields[i]), false
      for n = 1, math.min(tonumber(fields[i + 1]) or 1, @READER_HOLDS@) do
        local right = right_of(lock, fields[i], n)
        local left = redis.call('pttl', right)
        if left == -1 then
          left = ttl > 0 and ttl or @DEFAULT_LEASE@ -- of Redisson and of Holdfast
          redis.pcall('pexpire', right, left)
        end
        longest, alive = math.max(longest, left), alive or left >= 0
      end
      if ours and not alive then
        redis.call('hdel', lock, fields[i])
      end
      foreign = foreign or not ours
    end
  end
  if longest > 0 then
    redis.call('pexpire', lock, longest)
    return foreign, ttl - longest > @SHORTER@ and longest or nil
  end
  redis.call('del', lock)
  return false
end

-- put_side gives the lock, whose state allows it, to id. A reader's right ends with the key right (nil: to be named). It never
-- shortens a TTL: neither for others, if a client has taken the lock's away, nor, as a late copy, for id. It returns nil, or an error.
local function put_side(lock, id, ttl, right)
  if not is_writer(id) then
    right = right or right_of(lock, id, 1)
  end
  -- Read before anything is written: an ACL that forbids it must not leave a lock without TTL.
  local left, rights = redis.call('pttl', lock), right and redis.call('pttl', right)
  local added = redis.call('hset', lock, 'mode', right and 'read' or 'write', id, '1')
  local set = 1
  if left < tonumber(ttl) then -- -1: another client has made it so; others' rights may last for longer
    set = redis.pcall('pexpire', lock, left == -1 and right and math.max(tonumber(ttl), @DEFAULT_LEASE@) or ttl)
  end
  if set == 1 and right and rights < tonumber(ttl) then
    set = redis.pcall('set', right, '1', 'px', ttl)
  end
  if type(set) == 'table' and set.err then
    if added > 0 or left < 0 or right and rights < 0 then
      take_back(lock, id)
    end
    return no_ttl(set)
  end
  if left == -1 and right then
    survivors(lock)
  end
end

-- remove_side ends the right of id, which holds the lock; right is as for put_side. It returns what survivors does.
local function remove_side(lock, id, right)
  redis.call('hdel', lock, id)
  if not is_writer(id) then
    redis.call('del', right or right_of(lock, id, 1))
  end
  if redis.call('hlen', lock) == 1 then
    redis.call('del', lock)
    return false
  end
  if is_writer(id) then -- it was a reader as well: Redisson's downgrade
    redis.call('hset', lock, 'mode', 'read')
  end
  return survivors(lock)
end

-- replace has another id take the place of id, which holds the lock of any kind, for ttl milliseconds. The rights of readers are as for
-- put_side. It returns nil, or an error: then id still holds it.
local function replace(lock, id, other, ttl, right, right_other)
  local refusal = (right or is_writer(id)) and put_side(lock, other, ttl, right_other)
  local set = refusal or right or redis.pcall('pexpire', lock, ttl)
  if type(set) == 'table' then
    return set
  elseif right then
    remove_side(lock, id, right)
  else
    redis.call('hset', lock, other, '1')
    redis.call('hdel', lock, id)
  end
end
