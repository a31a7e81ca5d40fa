-- force_release.lua: free a lock of any kind, whoever holds it, and tell whoever
-- waits, as Redisson's forceUnlock does for each kind.
--
-- KEYS[1]  the lock
-- KEYS[2]  channel of a mutex; a fair waiter's is KEYS[2] .. ':' .. its owner id
-- KEYS[3]  channel of a read-write lock
-- KEYS[4]  queue of fair waiters: list
-- ARGV[1]  command that announces the release: publish or spublish
--
-- Returns  1  freed
--          0  it was free
--         -1  the key is not a lock; it is left as it is

local kind = redis.call('type', KEYS[1]).ok
if kind == 'none' then
  return 0
end
if kind ~= 'hash' then
  return -1
end
local mode = redis.call('hget', KEYS[1], 'mode')
redis.call('del', KEYS[1])
if mode == 'write' then
  redis.pcall(ARGV[1], KEYS[3], '1')
elseif mode == 'read' then
  redis.pcall(ARGV[1], KEYS[3], '0')
else
  redis.pcall(ARGV[1], KEYS[2], '0')
  local head = redis.pcall('lindex', KEYS[4], 0)
  if type(head) == 'string' then
    redis.pcall(ARGV[1], KEYS[2] .. ':' .. head, '0')
  end
end
return 1
