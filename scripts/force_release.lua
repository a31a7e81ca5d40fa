-- force_release.lua: free a lock of any kind, whoever holds it, and tell whoever
-- waits, as Redisson's forceUnlock does for each kind.
--
-- KEYS[1]  the lock
-- KEYS[2]  queue of a mutex or fair lock: list, see prelude/queue.lua
-- KEYS[3]  its times: zset
-- KEYS[4]  queue of a read-write lock: list
-- KEYS[5]  its times: zset
-- ARGV[1]  command that announces the release: publish or spublish
-- ARGV[2]  channel of a mutex; a fair waiter's is ARGV[2] .. ':' .. its owner id
-- ARGV[3]  channel of a read-write lock
-- ARGV[4]  optional: the owner id that must hold it; without one, any may
--
-- Returns  1  freed
--          0  it was free
--         -1  the key is not a lock; it is left as it is
--         -2  the owner id does not hold it; it is left as it is

-- prelude: kind queue redisson

local kind = kind_of(KEYS[1])
if kind == 'free' then
  redis.call('del', KEYS[1]) -- fails on a replica, which may not have it yet
  return 0
end
if kind == 'other' then
  return -1
end
local owner = ARGV[4]
if owner and redis.call('hexists', KEYS[1], owner) == 0 and redis.call('hexists', KEYS[1], owner .. ':write') == 0 then
  return -2
end
redis.call('del', KEYS[1])
local mutex = kind == 'mutex'
local queue, deadlines = mutex and KEYS[2] or KEYS[4], mutex and KEYS[3] or KEYS[5]
if mutex then
  tell(ARGV[1], ARGV[2], '0')
else
  tell(ARGV[1], ARGV[3], '1') -- and 0 behind it, see announce in prelude/rw.lua
  tell(ARGV[1], ARGV[3], '0')
end
local waiting = redis.pcall('lrange', queue, '0', '63')
if not waiting.err then
  local now = server_time()
  for _, id in ipairs(waiting) do
    local inbox, number = inbox_of(id)
    if inbox then -- it asks again
      redis.pcall('publish', inbox, 'o ' .. number)
    else
      tell(ARGV[1], ARGV[2] .. ':' .. id, '0')
    end
    local kept = redis.pcall('zscore', deadlines, id)
    if type(kept) == 'string' and tonumber(kept) > now then
      break -- those before it may be dead
    end
  end
end
return 1
