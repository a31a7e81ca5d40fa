-- ttl.lua: prelude of the scripts that take locks, for when a TTL is refused, as by an ACL. A lock gets its TTL right after
-- it is written, and is never left without one: what was written is taken back.

-- take_back removes a holder, and the lock if it was the only one.
local function take_back(lock, id)
  redis.call('hdel', lock, id)
  if redis.call('hlen', lock) == 1 then -- mode
    redis.call('del', lock)
  end
end

-- no_ttl returns the reply for the caller.
local function no_ttl(refusal)
  return redis.error_reply('HOLDFAST cannot set a TTL: ' .. tostring(refusal.err))
end
