-- expire.lua: prelude of the scripts that make keys beside the lock.

-- expire gives a key that was just written its TTL. If that is refused, as by an ACL, it deletes the key, which is never left
-- without TTL, and returns what Redis said.
local function expire(key, ttl)
  local set = redis.pcall('pexpire', key, ttl)
  if set ~= 1 then
    redis.call('del', key)
    return set
  end
end
