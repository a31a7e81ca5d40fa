-- redisson.lua: library of what waiters of Redisson are told, and of who listens.

-- channel_of names the channel of the lock that a queue belongs to.
local function channel_of(queue)
  local whose, name = string.match(queue, '^(.-)_queue(.*)$')
  return (whose == 'holdfast_rw' and 'redisson_rwlock' or whose == 'holdfast_permit' and 'redisson_sc' or 'redisson_lock__channel') .. name
end

-- tell sends a message with publish or spublish, as publish says, and returns how many clients heard it. On a server that does not
-- know spublish, Redisson listens to plain channels.
local function tell(publish, channel, message)
  local heard = redis.pcall(publish, channel, message)
  if publish == 'spublish' and type(heard) == 'table' then
    heard = redis.pcall('publish', channel, message)
  end
  return type(heard) == 'number' and heard or 0 -- refused: that must not fail a release
end

-- announce says that a lock is free, or that readers may come in, and returns how many clients heard it. To all who wait for a
-- read-write lock it says 1, and then 0: 1 is lost on a waiter that has been refused and does not sleep yet, 0 is not.
local function announce(publish, channel, all)
  if all then
    tell(publish, channel, '1')
  end
  return tell(publish, channel, '0')
end

-- listeners returns how many clients would hear tell.
local function listeners(publish, channel)
  local count = redis.pcall('pubsub', publish == 'spublish' and 'shardnumsub' or 'numsub', channel)
  if publish == 'spublish' and count.err then
    count = redis.pcall('pubsub', 'numsub', channel)
  end
  return count[2] or 0
end
