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

-- listeners returns how many clients would hear tell.
local function listeners(publish, channel)
  local count = redis.pcall('pubsub', publish == 'spublish' and 'shardnumsub' or 'numsub', channel)
  if publish == 'spublish' and count.err then
    count = redis.pcall('pubsub', 'numsub', channel)
  end
  return count[2] or 0
end

-- let_redisson_in reports whether this release is to be an open one: after every 16th
-- grant in a row, if somebody is subscribed to Redisson's channel, which ours are not
-- while one of us holds the lock. The next of ours is told, to ask again soon.
local function let_redisson_in(o)
  if o.turn < 16 then
    return false
  end
  if listeners(o.publish, o.channel) == 0 then
    o.turn = 0 -- to look again after 16 more
    return false
  end
  local inbox, number = inbox_of(redis.call('lindex', o.queue, '0'))
  if inbox then
    redis.pcall('publish', inbox, 'o ' .. number)
  end
  return true
end
