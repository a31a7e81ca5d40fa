-- rights.lua: prelude of the scripts of read-write locks; behind queue.lua.
--
-- A reader's right ends with a key of its own, whatever TTL the lock's hash has. That is to
-- last as long as the longest of them.

-- right_of names the key that a reader's n-th right ends with.
local function right_of(lock, reader, n)
  local base = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
  return base .. ':' .. reader .. ':rwlock_timeout:' .. n
end

-- survivors looks at the holders of a lock in read mode, after a reader has gone, or a client has taken its TTL away: it
-- sets the TTL of the hash to the longest right left, or frees the lock if none is,
-- since a reader that died leaves its field behind; it takes those of Holdfast away. A right without
-- TTL, which another client has made so, gets that of the hash. It returns whether one of those left is
-- Redisson's, whose release notifies no waiter of Holdfast; and if the TTL is now shorter by more than a tenth of a second, how long
-- it is. Readers that come and go together differ by less, which is not worth a message.
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
