-- mutex_acquire.lua: take a mutex for one owner id.
--
-- An owner id belongs to one hold of one process and is never used again, so an
-- owner that is found in the hash is this same request, executed before.
--
-- KEYS[1]  the lock: hash, owner id -> hold count
-- KEYS[2]  tombstones: zset of owner ids that were given up
-- KEYS[3]  fencing counter
-- ARGV[1]  owner id
-- ARGV[2]  TTL, milliseconds
-- ARGV[3]  how many fencing tokens to reserve; 0 without fencing
-- ARGV[4]  the highest token that the caller has seen; 0 without fencing
--
-- Returns {1, token}   granted; token is the last of the reserved ones, or 0
--         {0, ttl}     held by another owner for ttl more milliseconds, -1: no TTL
--         {-1, 0}      one of the keys holds something else than its kind
--         {-2, 0}      this owner id was given up: a late copy of the request

local lock, owner, ttl = KEYS[1], ARGV[1], tonumber(ARGV[2])
local tokens = tonumber(ARGV[3])

-- One command answers the common case: no holder, no tombstone.
if redis.call('exists', lock, KEYS[2]) > 0 then
  if redis.call('zscore', KEYS[2], owner) then
    return {-2, 0}
  end
  local fields = redis.pcall('hlen', lock)
  if type(fields) ~= 'number' or fields > 1 then
    return {-1, 0} -- a read-write lock has two fields or more
  end
  if fields == 1 then
    if redis.call('hexists', lock, owner) == 0 then
      return {0, redis.call('pttl', lock)}
    end
    if redis.call('pttl', lock) < ttl then
      redis.call('pexpire', lock, ttl)
    end
    return {1, tokens > 0 and tonumber(redis.call('get', KEYS[3])) or 0}
  end
end

-- The counter first: whatever fails from here on, a skipped token harms nobody.
local token = 0
if tokens > 0 then
  token = redis.pcall('incrby', KEYS[3], tokens)
  if type(token) ~= 'number' then
    if string.find(token.err, 'WRONGTYPE', 1, true) or string.find(token.err, 'not an integer', 1, true) then
      return {-1, 0}
    end
    return token
  end
  local behind = tonumber(ARGV[4]) + tokens - token
  if behind > 0 then -- the counter was lost: go on above what was seen
    token = redis.call('incrby', KEYS[3], behind)
  end
end

redis.call('hset', lock, owner, 1)
local expires = redis.pcall('pexpire', lock, ttl)
if expires ~= 1 then -- an ACL that forbids it: never leave a lock without TTL
  redis.call('hdel', lock, owner)
  return redis.error_reply('HOLDFAST cannot set a TTL: ' .. tostring(expires.err))
end
return {1, token}
