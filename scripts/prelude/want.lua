-- want.lua: prelude of the scripts that refuse callers because of a holder that may linger, or free its lock; behind queue.lua.
--
-- The number in an owner id begins with 0 if its process may keep the lock after Unlock, for its own next caller. It gives the
-- lock up when it hears that another process wants it.

-- want tells the process of holder, which may linger, that id wants the lock, and stands in the queue. The process answers a TryLock
-- that asks. Without place and id, force_release.lua has freed the lock.
local function want(holder, place, id)
  local inbox, number = inbox_of(holder)
  redis.pcall('publish', inbox, 'w ' .. number .. (place == 'ask' and ' ' .. id or ''))
end

-- state_beside returns the state of a lock whose holders may all linger, for a caller with that id.
local function state_beside(queue, id)
  local first = redis.pcall('lindex', queue, '0')
  return (not first or first == id) and @STATE_LINGERS@ or @STATE_HELD@
end
