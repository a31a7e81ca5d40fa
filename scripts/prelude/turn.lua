-- turn.lua: prelude of the scripts that let plain waiters of Redisson in now and then; behind
-- queue.lua and redisson.lua.

-- redissons_turn reports whether a release is to be an open one instead of the 17th grant in
-- a row: if a client is subscribed to Redisson's channel, which Holdfast's are not while one of them
-- holds the lock. Holdfast's next waiter is notified, to ask again soon. If not, or if the next is Redisson's
-- anyway, the count begins again, to look after 16 more.
local function redissons_turn(queue, channel, publish)
  local next = redis.pcall('lindex', queue, '0')
  local inbox, number = inbox_of(type(next) == 'string' and next or '')
  if not inbox or listeners(publish, channel) == 0 then
    return false
  end
  redis.pcall('publish', inbox, 'o ' .. number)
  return true
end
