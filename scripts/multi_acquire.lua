-- multi_acquire.lua: take several mutexes or fair locks at once, all or none. It waits for none.
--
-- KEYS[4i-3]  lock: the i-th: hash, owner id -> hold count
-- KEYS[4i-2]  queue: its list of waiters, see lib/queue.lua
-- KEYS[4i-1]  deadlines: zset that belongs to the queue
-- KEYS[4i]    tombstones: its zset of owner ids that were given up
-- ARGV[1]     prefix: what the owner ids begin with
-- ARGV[2i]    tail: what the i-th owner id ends with
-- ARGV[2i+1]  lease: the i-th TTL, milliseconds
--
-- Returns 0               granted, all of them
--         {0, i, waited}  the i-th is held by another owner, or its id was given up; waited is 1
--                         if lock_acquire.lua has more to say: it is free and only waited for, or its holder may linger
--         {-1, i, key, text}
--                         one of the i-th's keys holds something else than its kind; text says what

-- include: keys queue

-- All is read before anything is written: an ACL that forbids it must not leave a lock without TTL.
local left = {}
for i = 1, #KEYS / 4 do
  left[i] = redis.call('pttl', lock)
  if redis.call('exists', lock, tombstones, queue) > 0 then
    local id = prefix .. tail
    local fields, buried = redis.pcall('hlen', lock), redis.pcall('zscore', tombstones, id)
    local waited, next = 0, redis.pcall('lindex', queue, '0')
    local key, failure = nil, type(fields) == 'table' and fields or type(buried) == 'table' and buried or type(next) == 'table' and next
    if failure or fields > 1 then
      key = (failure == fields or not failure) and lock or failure == buried and tombstones or queue
      local reply = wrong(key, failure)
      return reply.err and reply or {@ACQUIRE_KIND@, i, reply[2], reply[3]}
    end
    local refused = buried or fields == 1 and redis.call('hexists', lock, id) == 0
    if refused and not buried and string.find(redis.call('hkeys', lock)[1], @LINGERS@) then
      waited = 1
    end
    -- If an earlier copy of the request has taken it, waiters come behind that.
    if next and fields == 0 and not refused then
      -- Waiters whose time is over do not count. The next request takes their places away.
      local now, looked = server_time(), 0
      while next and not refused do
        local kept = redis.pcall('zscore', deadlines, next)
        looked = looked + 1
        refused = type(kept) ~= 'string' or tonumber(kept) > now or looked == @DEAD@ -- lock_acquire takes away so many
        next = redis.call('lindex', queue, looked)
      end
      waited = refused and 1 or 0
    end
    if refused then
      return not_master(lock) or {@ACQUIRE_HELD@, i, waited}
    end
  end
end

for i = 1, #KEYS / 4 do
  redis.call('hset', lock, prefix .. tail, '1')
  if left[i] < tonumber(lease) then
    local expires = redis.pcall('pexpire', lock, lease)
    if expires ~= 1 then
      local last = i
      for i = 1, last do
        if left[i] < 0 then -- else an earlier copy of the request has taken it
          take_back(lock, prefix .. tail)
        end
      end
      return no_ttl(expires)
    end
  end
end
return 0
