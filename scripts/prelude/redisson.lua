-- redisson.lua: prelude of the scripts that tell waiters of Redisson; behind queue.lua.

-- tell sends a message to Redisson's waiters and returns how many clients heard it: with
-- publish or spublish, whichever publish says, but a server that does not know spublish
-- has no sharded channels, and then Redisson listens to plain ones.
local function tell(publish, channel, message)
  local heard = redis.pcall(publish, channel, message)
  if publish == 'spublish' and type(heard) == 'table' then
    heard = redis.pcall('publish', channel, message)
  end
  return type(heard) == 'number' and heard or 0 -- refused: that must not fail a release
end

-- wake_evicted returns a function that tells a fair waiter of Redisson that its place is gone: it may be alive,
-- and would sleep for as long as it was told to.
local function wake_evicted(publish, channel)
  return function(id)
    if not inbox_of(id) then
      tell(publish, channel .. ':' .. id, '0')
    end
  end
end

-- listeners returns how many clients would hear tell.
local function listeners(publish, channel)
  local count = redis.pcall('pubsub', publish == 'spublish' and 'shardnumsub' or 'numsub', channel)
  if publish == 'spublish' and count.err then
    count = redis.pcall('pubsub', 'numsub', channel)
  end
  return count[2] or 0
end
