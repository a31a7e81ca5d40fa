-- successor.lua: prelude of the scripts that take waiters out of the queue of a mutex or a fair lock that others hold.
--
-- Only the first waiter is told that the lock ends earlier than it knew (prelude/stay.lua). If it leaves, who is first then is told the end
-- as well.
--
-- It uses of the script
--   lock, queue  keys
--   was          the first in the queue before
--   next         the first in the queue, if there is one
--   free         whether the lock is free

if not free and was ~= next and type(next) == 'string' then
  -- prelude: queue

  local inbox, number = inbox_of(next)
  if inbox then
    redis.pcall('publish', inbox, 'o ' .. number .. ' ' .. math.max(redis.call('pttl', lock), 1))
  end
end
