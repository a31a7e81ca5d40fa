-- mutex_release.lua: give a mutex back if the owner id still holds it.
--
-- KEYS[1]  the lock: hash, owner id -> hold count
-- KEYS[2]  channel of the lock
-- KEYS[3]  tombstones: zset of owner ids that were given up; only with ARGV[3]
-- ARGV[1]  owner id
-- ARGV[2]  command that announces the release: publish or spublish
-- ARGV[3]  milliseconds for which a late acquire of this owner id is to be
--          refused; absent where none can be under way
--
-- Returns  n   released, and n clients were listening (in a cluster: on this node)
--         -1   not held by this owner, and nobody else holds it
--         -2   not held by this owner but by another one

local removed = redis.pcall('hdel', KEYS[1], ARGV[1]) -- the last field takes the key with it
local reply
if removed == 1 then
  -- The lock is free already: a message that is refused must not fail the release.
  reply = redis.pcall(ARGV[2], KEYS[2], '0')
  reply = type(reply) == 'number' and reply or 0
elseif removed ~= 0 and not string.find(removed.err, 'WRONGTYPE', 1, true) then
  return removed
else
  reply = -1 - redis.call('exists', KEYS[1])
end

if ARGV[3] then
  -- Behind the release: Redis refuses a first write that needs memory when it has none,
  -- and none after it. Where it refuses this one, it refuses a late acquire as well.
  local time = redis.call('time')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if redis.pcall('zadd', KEYS[3], now + ARGV[3], ARGV[1]) == 1 then
    if redis.pcall('pexpire', KEYS[3], ARGV[3]) ~= 1 then
      redis.call('del', KEYS[3]) -- an ACL that forbids it: never leave a key without TTL
    end
    redis.pcall('zremrangebyscore', KEYS[3], '-inf', now)
  end
end
return reply
