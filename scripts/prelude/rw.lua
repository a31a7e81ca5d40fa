-- rw.lua: prelude of the scripts of read-write locks; behind queue.lua, rights.lua,
-- redisson.lua, grant.lua, step_out.lua and first.lua.
--
-- The lock is Redisson's hash: mode -> read or write, and a field per holder. The id
-- of a reader is its owner id; of a writer, the owner id with :write behind it.

local function is_writer(id)
  return string.sub(id, -6) == ':write'
end

-- channel_of names the channel of the lock that a queue belongs to.
local function channel_of(queue)
  return 'redisson_rwlock' .. string.sub(queue, #'holdfast_rw_queue' + 1)
end

-- announce tells Redisson's waiters that the lock is free, or that readers may come in,
-- and returns how many clients heard it. After a writer it says 1, for all, and then 0
-- as well: 1 is lost on a waiter that has been refused and does not sleep yet, 0 is not.
local function announce(publish, channel, all)
  if all then
    tell(publish, channel, '1')
  end
  return tell(publish, channel, '0')
end

-- put gives the lock, whose state allows it, to id for ttl milliseconds. The right of a reader ends with the key right (nil:
-- to be named); a writer has none. It never shortens a TTL: neither for others, if another client has taken the lock's away,
-- nor, as a late copy, for id. It returns nil, or the error that kept it from that.
local function put(lock, id, ttl, right)
  if not is_writer(id) then
    right = right or right_of(lock, id, 1)
  end
  -- Read before anything is written: an ACL that forbids it must not leave a lock without TTL.
  local left, rights = redis.call('pttl', lock), right and redis.call('pttl', right)
  local added = redis.call('hset', lock, 'mode', right and 'read' or 'write', id, '1')
  local set = 1
  if left < tonumber(ttl) then -- -1: another client has made it so; others' rights may last for longer
    set = redis.pcall('pexpire', lock, left == -1 and right and math.max(tonumber(ttl), @DEFAULT_LEASE@) or ttl)
  end
  if set == 1 and right and rights < tonumber(ttl) then
    set = redis.pcall('set', right, '1', 'px', ttl)
  end
  if type(set) == 'table' and set.err then
    -- prelude: ttl

    if added > 0 or left < 0 or right and rights < 0 then
      take_back(lock, id)
    end
    return no_ttl(set)
  end
  if left == -1 and right then
    survivors(lock)
  end
end

-- take_out ends the right of id, which holds the lock; right is as for put. It returns what survivors does.
local function take_out(lock, id, right)
  redis.call('hdel', lock, id)
  if not is_writer(id) then
    redis.call('del', right or right_of(lock, id, 1))
  end
  if redis.call('hlen', lock) == 1 then
    redis.call('del', lock)
    return false
  end
  if is_writer(id) then -- it was a reader as well: Redisson's downgrade
    redis.call('hset', lock, 'mode', 'read')
  end
  return survivors(lock)
end

-- let_in grants the lock to those in front of the queue as its state allows: one
-- writer, or all readers up to the next writer. It returns how many; the message, if
-- one of them is a waiter of the process whose inbox is o.own; and true if it came to o.me, which it has
-- taken out of the queue for the caller to be served. o.crowded is then true if so many in front are dead that
-- one script does not remove them all.
local function let_in(o)
  local deadlines = o.deadlines
  local mode = redis.pcall('hget', o.lock, 'mode')
  local granted, message, rest = 0, nil, @DEAD@
  if mode and mode ~= 'read' and mode ~= 'write' or not mode and redis.call('exists', o.lock) == 1 then
    return 0, nil, false -- the name has been taken by something of another kind: not to be touched
  end
  while mode ~= 'write' do
    local id, kept, removed = first(o.queue, deadlines, o.now, nil, math.max(rest, 1))
    rest = rest - (id and removed or 0)
    o.crowded = id and (kept <= o.now or rest <= 0)
    if not id or o.crowded or mode and is_writer(id) then
      break
    end
    local more = redis.call('llen', o.queue) > 1
    if id == o.me then
      step_out(o.queue, deadlines, id, more)
      return granted, message, true
    end
    local inbox, number = inbox_of(id)
    local token = token_for(inbox and o.counter)
    if inbox then -- or it was put there by hand, and no caller waits for it
      if put(o.lock, id, o.claim) then
        break
      end
      local text = message_of(number, o.claim, o.time, o.turn, more, token)
      local own = inbox == o.own
      if own or grant(inbox, text, o.counted, deadlines, id) then
        granted = granted + 1
        message = own and text or message
        mode = is_writer(id) and 'write' or 'read'
      else
        take_out(o.lock, id) -- its process is dead, or asks when it hears again
        rest = rest - @DEAD_PROCESS@
      end
    end
    step_out(o.queue, deadlines, id, more)
  end
  return granted, message, false
end
