-- inspect.lua: what is known about a lock of any kind. It writes nothing.
--
-- KEYS[1]  the lock
-- KEYS[2]  fencing counter
-- KEYS[3]  queue of a mutex or fair lock: list
-- KEYS[4]  queue of a read-write lock: list
--
-- Returns {kind, ttl, token, waiters, field, value, field, value, ...}: what the key holds
-- (free, mutex, read, write, other), its PTTL, the fencing counter, the length of the queues,
-- and the fields of the lock: none if the key is not one.

-- prelude: kind

local kind, fields = kind_of(KEYS[1])
local token = redis.pcall('get', KEYS[2])
local waiters, others = redis.pcall('llen', KEYS[3]), redis.pcall('llen', KEYS[4])
local info = {
  kind,
  redis.call('pttl', KEYS[1]),
  tonumber(type(token) == 'string' and token or '0') or 0,
  (type(waiters) == 'number' and waiters or 0) + (type(others) == 'number' and others or 0),
}
for _, v in ipairs(fields) do
  info[#info + 1] = v
end
return info
