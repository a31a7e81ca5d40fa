-- mutex_acquire.lua: take a mutex for one owner id.
--
-- An owner id belongs to one hold of one process and is never used again, so an
-- owner that is found in the hash is this same request, executed before.
--
-- KEYS[1]  the lock: hash, owner id -> hold count
-- KEYS[2]  tombstones: zset of owner ids that were given up
-- KEYS[3]  fencing counter; only with fencing, as ARGV[3] and ARGV[4]
-- ARGV[1]  owner id
-- ARGV[2]  TTL, milliseconds
-- ARGV[3]  how many fencing tokens to reserve
-- ARGV[4]  the highest token that the caller has seen
--
-- Returns token      granted; the last of the reserved tokens, or 0 without fencing
--         {0, ttl}   held by another owner for ttl more milliseconds, -1: no TTL
--         {-1, 0}    one of the keys holds something else than its kind
--         {-2, 0}    this owner id was given up: a late copy of the request

-- One command answers the common case: no holder, no tombstone.
if redis.call('exists', KEYS[1], KEYS[2]) > 0 then
  local buried = redis.pcall('zscore', KEYS[2], ARGV[1])
  if buried then
    return {type(buried) == 'table' and -1 or -2, 0}
  end
  local fields = redis.pcall('hlen', KEYS[1])
  if type(fields) ~= 'number' or fields > 1 then
    return {-1, 0} -- a read-write lock has two fields or more
  end
  if fields == 1 then
    if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
      return {0, redis.call('pttl', KEYS[1])}
    end
    if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then
      redis.call('pexpire', KEYS[1], ARGV[2])
    end
    if not ARGV[3] then
      return 0
    end
    return tonumber(redis.call('get', KEYS[3]) or redis.call('incrby', KEYS[3], ARGV[4] + ARGV[3]))
  end
end

-- The counter first: whatever fails from here on, a skipped token harms nobody.
local token = 0
if ARGV[3] then
  token = redis.pcall('incrby', KEYS[3], ARGV[3])
  if type(token) ~= 'number' then
    if string.find(token.err, 'WRONGTYPE', 1, true) or string.find(token.err, 'not an integer', 1, true) then
      return {-1, 0}
    end
    return token
  end
  local behind = ARGV[4] + ARGV[3] - token
  if behind > 0 then -- the counter was lost: go on above what was seen
    token = redis.call('incrby', KEYS[3], behind)
  end
end

redis.call('hset', KEYS[1], ARGV[1], '1')
local expires = redis.pcall('pexpire', KEYS[1], ARGV[2])
if expires ~= 1 then -- an ACL that forbids it: never leave a lock without TTL
  redis.call('hdel', KEYS[1], ARGV[1])
  return redis.error_reply('HOLDFAST cannot set a TTL: ' .. tostring(expires.err))
end
return token
