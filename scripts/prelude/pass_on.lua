-- pass_on.lua: prelude of the scripts that give a mutex or a fair lock back. Like lock.lua, which it has inside, it is no
-- function: it passes a lock that is free on, and says what the script answers.
--
-- It uses of the script
--   lock, queue, deadlines  keys
--   counter                 the key of the fencing counter; nil without fencing
--   publish, channel        how and where Redisson's waiters are told
--   offer                   how to hand over, see prelude/offer.lua
--   owner                   an id of the caller
--   removed                 1: the caller held the lock
--   free                    whether it is free now
--   next                    the first in the queue, if there is one
-- and sets reply, see lock_release.lua.

local reply
if free and type(next) == 'string' then -- else there is no waiter, or the queue is none
  -- copy of offer_of (prelude/offer.lua)
  local claim, turn, counted = string.match(offer, '^(%d+) (%d+) (%d) ?(%l*)$')
  -- end
  local manager = string.match(owner, '^hf%-([%x%-]+)')
  local time, id, more, me, open = redis.call('time'), next, redis.call('lindex', queue, '1'), nil, false
  if #turn > 1 and tonumber(turn) > @TURNS@ then
    -- prelude: queue redisson turn

    open, turn = redissons_turn(queue, channel, publish), '1'
    if open then
      tell(publish, channel, '0')
      id = nil
    end
  end

  -- prelude: lock

  reply = (open or told == 0) and @RELEASE_HANDED_OVER@ or told == 1 and @RELEASE_CROWDED@ or told
end
if not reply and removed == 1 then
  -- prelude: queue redisson

  reply = tell(publish, channel, '0')
end
if removed ~= 1 and type(reply) ~= 'string' and reply ~= @RELEASE_CROWDED@ then
  reply = @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
end
