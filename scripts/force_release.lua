-- force_release.lua: free a lock of any kind, for any owner, and notify its waiters, as Redisson's forceUnlock does for each kind. Of
-- the first @FORCED@ holders, those that may keep the lock are notified as well.
--
-- KEYS[1]  lock: of any kind
-- KEYS[2]  lock_queue: of a mutex or fair lock: list, see lib/queue.lua
-- KEYS[3]  lock_deadlines: zset that belongs to it
-- KEYS[4]  rw_queue: of a read-write lock: list
-- KEYS[5]  rw_deadlines: zset that belongs to it
-- KEYS[6]  held: of a semaphore: the permits that are held: zset, see lib/permit.lua
-- KEYS[7]  permit_queue: of a semaphore: list
-- ARGV[1]  publish: command that announces the release: publish or spublish
-- ARGV[2]  channel: of a mutex; a fair waiter's has ':' and its owner id behind it
-- ARGV[3]  rw_channel: of a read-write lock
-- ARGV[4]  permit_channel: of a semaphore
-- ARGV[5]  owner: optional: the owner id that must hold it, or the permit, in hexadecimal digits, that is freed; without one, all are
--
-- Returns  1  freed
--          0  it was free
--         -1  the key is not a lock; it is left as it is
--         -2  the owner id does not hold it; it is left as it is

-- include: keys queue redisson permit

local kind, fields = kind_of(lock)
local permits, number = redis.pcall('zcount', held, '-inf', '+inf'), number_of(lock)
if number or kind == 'free' and type(permits) == 'number' and permits > 0 then
  local refusal = not_master(lock)
  if refusal or type(permits) == 'table' or permits == 0 then
    return refusal or 0
  elseif owner and not redis.call('zscore', held, bytes_of(owner)) then
    return @FORCE_OTHER_OWNER@
  end
  local freed = owner and 1 or permits
  local left = number and redis.call('incrby', lock, freed) or 0
  local removed = owner and redis.pcall('zrem', held, bytes_of(owner)) or not owner and redis.pcall('del', held)
  if type(removed) == 'table' then -- refused, as by an ACL
    if number then
      redis.call('incrby', lock, -freed)
    end
    return removed
  end
  if left > 0 then
    tell(publish, permit_channel, left)
  end
  notify_all(permit_queue)
  return 1
end
if kind == 'free' then
  return not_master(lock) or 0
elseif kind == 'other' then
  return -1
end
if owner and redis.call('hexists', lock, owner) == 0 and redis.call('hexists', lock, owner .. ':write') == 0 then
  return @FORCE_OTHER_OWNER@
end
for i = 1, math.min(#fields, 2 * @FORCED@), 2 do
  if string.find(fields[i], @LINGERS@) then -- it gives up what it keeps, which is gone
    notify(fields[i], 'w')
  end
end
redis.call('del', lock)
local mutex = kind == 'mutex'
local queue, deadlines = mutex and lock_queue or rw_queue, mutex and lock_deadlines or rw_deadlines
announce(publish, mutex and channel or rw_channel, not mutex)
local now = server_time()
for _, id in ipairs(redis.pcall('lrange', queue, '0', '@FORCED@')) do -- none, if the queue is something else
  if not notify(id, 'o') then
    tell(publish, channel .. ':' .. id, '0')
  end
  local kept = redis.pcall('zscore', deadlines, id)
  if type(kept) == 'string' and tonumber(kept) > now then
    break -- those before it may be dead
  end
end
return 1
