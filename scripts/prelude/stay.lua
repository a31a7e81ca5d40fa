-- stay.lua: prelude of the scripts that leave a lock taken for a time; behind queue.lua and redisson.lua.

-- tell_end tells the next waiter, and Redisson's, that the lock ends in left milliseconds: they know of another time.
local function tell_end(queue, left, publish, channel)
  local next = redis.pcall('lindex', queue, '0')
  if type(next) == 'string' then
    local inbox, number = inbox_of(next)
    if inbox then
      redis.pcall('publish', inbox, 'o ' .. number .. ' ' .. left)
    else
      tell(publish, channel .. ':' .. next, '0')
    end
  end
  tell(publish, channel, '0')
end
