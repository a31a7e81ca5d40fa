-- grant.lua: library of the remote hand-off: how a lock is granted to those in front of its queue. An offer says how,
-- "<claim> <turn> <counted>" in whole numbers:
--
--   claim    the TTL of the grant, milliseconds
--   turn     which grant in a row it would be
--   counted  1 if PUBSUB NUMSUB counts all listeners; 0 on a cluster, a node of which counts its own
--
-- In an acquire the command that tells Redisson's waiters is behind it: publish or spublish.
--
-- A table o has what is known of the lock:
--
--   lock, queue, deadlines  keys
--   counter                 the key of the fencing counter; nil without fencing
--   sides                   whether it is a read-write lock
--   add, remove             how a holder is written and removed: put_side and remove_side, or put and take_back
--   publish, channel        how and where Redisson's waiters are told
--   leave_to                of a mutex or fair lock: leave_to_redisson
--   room                    of a semaphore: tells whether enough permits are available for an id
--   claim, turn, counted    the offer
--   own                     the inbox of the caller's process, whose grant is the script's reply; nil: there is none
--   me                      the caller's own id, if it waits
--
-- and let_in adds crowded: so many in front are dead that one script does not remove them all; and offered: a fair waiter of Redisson
-- is next, and was told.

-- include: queue redisson rights

-- offer_of takes an offer apart. All parts are texts.
local function offer_of(offer)
  return string.match(offer, '^(%d+) (%d+) (%d) ?(%l*)$')
end

-- message_of returns the message of a grant, with the server's time, and the last of the fencing tokens that it reserves: 0 without
-- fencing, and if the counter refuses. The process then asks for a token, and the reply says what is wrong.
--   g <number> <claim> <seconds> <microseconds> <turn> <1 if others wait, else 0> <last token>
local function message_of(counter, number, claim, time, turn, more)
  local token = '0'
  if counter then
    token = redis.pcall('incrby', counter, '@TOKENS@')
    token = type(token) == 'number' and token < @TOKEN_END@ and string.format('%.0f', token) or '0'
  end
  return 'g ' .. number .. ' ' .. claim .. ' ' .. time[1] .. ' ' .. time[2] .. ' ' .. turn .. (more and ' 1 ' or ' 0 ') .. token
end

-- is_dead reports whether the process of id is taken for dead: no client listens to its inbox, although it heard one when it last asked
-- (the time of its place says so), and the server knows of all listeners. If it only lost its connection, it is in front again when it
-- asks. PUBLISH does not tell: replicas pass messages on, and a process that listens to one would believe a grant that was undone.
local function is_dead(deadlines, id, inbox, counted)
  return counted == '1' and redis.pcall('pubsub', 'numsub', inbox)[2] == 0
    and (redis.call('zscore', deadlines, id) or 0) % 1 == 0
    and type(redis.pcall('cluster', 'info')) == 'table' -- an error: it is none
end

-- leave_to_redisson tells a fair waiter of Redisson, which is next, that the lock is free. more: others stand behind it.
local function leave_to_redisson(o, id, kept, now, more)
  -- It has no longer than Holdfast's to take it, if others want it: who of Redisson's comes behind it counts from its time.
  local most = now + @REDISSON_PLACE@
  if (o.me or more) and kept > most then
    redis.call('zadd', o.deadlines, most, id)
  end
  tell(o.publish, o.channel .. ':' .. id, '0')
  -- Its release will be announced on a channel that Holdfast's waiters do not listen to yet.
  for _, other in ipairs(redis.call('lrange', o.queue, '1', '@BEHIND@')) do
    if other == o.me or notify(other, 'o') then
      break
    end
  end
  o.offered = true
end

-- let_in grants the lock to those in front of the queue as its state allows: a mutex or fair lock, which is free, to one; a read-write
-- lock to one writer, or all readers up to the next writer; permits to as many as they suffice for. It returns how many; the message,
-- if one is of the caller's process; and true if it came to the caller, whom it has taken out of the queue to be served.
local function let_in(o)
  local now, time = server_time()
  local granted, message, rest, mode = 0, nil, @DEAD@, nil
  if o.sides then
    mode = redis.pcall('hget', o.lock, 'mode')
    if mode and mode ~= 'read' and mode ~= 'write' or not mode and redis.call('exists', o.lock) == 1 then
      return 0, nil, false -- the name has been taken by something of another kind: not to be touched
    end
  end
  while mode ~= 'write' do
    local id, kept, removed = first(o.queue, o.deadlines, now, math.max(rest, 1), not o.sides and o.publish, o.channel)
    rest = rest - (id and removed or 0)
    o.crowded = id and (kept <= now or rest <= 0)
    if not id or o.crowded or mode and is_writer(id) or o.room and not o.room(id) then
      break
    end
    local more = redis.call('llen', o.queue) > 1
    local inbox, number = inbox_of(id)
    if id == o.me then
      step_out(o.queue, o.deadlines, id, more)
      return granted, message, true
    elseif not inbox and o.leave_to then
      o.leave_to(o, id, kept, now, more)
      break
    elseif inbox then -- or it was put there by hand, and no caller waits for it
      local text = message_of(o.counter, number, o.claim, time, o.turn, more)
      if o.add(o.lock, id, o.claim) then
        break
      end
      if inbox == o.own and not message then
        message = text
      elseif is_dead(o.deadlines, id, inbox, o.counted) then
        o.remove(o.lock, id) -- or it asks when it hears again
        rest, inbox = rest - @DEAD_PROCESS@, nil
      else
        redis.pcall('publish', inbox, text)
      end
    end
    if inbox then
      granted, mode = granted + 1, not o.room and (o.sides and not is_writer(id) and 'read' or 'write')
    end
    step_out(o.queue, o.deadlines, id, more)
  end
  return granted, message, false
end

-- pass_on passes a lock on that waiters want, and returns the code or message for the caller; nil if no waiter has come in. Instead of the
-- 17th grant in a row it leaves the lock open, if a client is subscribed to Redisson's channel, which Holdfast's are not while one of
-- them holds the lock, and has Holdfast's next waiter ask again. If not, or the next is Redisson's anyway, the count begins again.
local function pass_on(o, offer, free)
  o.claim, o.turn, o.counted = offer_of(offer)
  if free and tonumber(o.turn) > @TURNS@ then
    o.turn = '1'
    local next = head(o.queue)
    if next and inbox_of(next) and listeners(o.publish, o.channel) > 0 then
      notify(next, 'o')
      if not o.room then -- the script says how many permits are available
        announce(o.publish, o.channel, o.sides)
      end
      return @RELEASE_HANDED_OVER@
    end
  end
  local granted, message = let_in(o)
  if granted > 0 or o.offered then
    return message or @RELEASE_HANDED_OVER@
  end
  return o.crowded and @RELEASE_CROWDED@ or nil
end

-- released returns what a release answers. reply is what pass_on has said, held whether the caller held the lock, all as for announce.
local function released(o, reply, held, free, all)
  if held and not reply then
    return free and announce(o.publish, o.channel, all) or @RELEASE_HANDED_OVER@
  elseif not held and type(reply) ~= 'string' and reply ~= @RELEASE_CROWDED@ then
    return @RELEASE_GONE@ - redis.call('exists', o.lock) -- one less if another owner holds it
  end
  return reply
end
