-- turn.lua: prelude of the scripts that let plain waiters of Redisson in now and then; behind
-- queue.lua and redisson.lua.

-- redissons_turn reports whether a release is to be an open one instead of the 17th grant in
-- a row: if somebody is subscribed to Redisson's channel, which ours are not while one of us
-- holds the lock. The next of ours is told, to ask again soon. If not, the count begins
-- again, to look after 16 more.
local function redissons_turn(queue, channel, publish)
  if listeners(publish, channel) == 0 then
    return false
  end
  local inbox, number = inbox_of(redis.call('lindex', queue, '0'))
  if inbox then
    redis.pcall('publish', inbox, 'o ' .. number)
  end
  return true
end
