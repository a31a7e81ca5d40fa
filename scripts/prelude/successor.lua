-- successor.lua: prelude of the scripts that take waiters out of the queue of a mutex or a fair lock that others hold.
--
-- Only the first waiter is told that the lock ends earlier than it knew (prelude/stay.lua). If that one leaves, the next one gets the
-- same message.
--
-- It uses of the script
--   lock, queue  keys
--   was          the first in the queue before
--   next         the first in the queue, if there is one
--   free         whether the lock is free

if not free and was ~= next and type(next) == 'string' then
  -- prelude: queue

  local inbox, number = inbox_of(next)
  local left = redis.call('pttl', lock)
  if inbox and left >= 0 then
    redis.pcall('publish', inbox, 'o ' .. number .. ' ' .. math.max(left, 1))
  end
end
