-- rw_release.lua: give a side of a read-write lock back if the owner id still holds it,
-- and let in the waiters that can come in now.
--
-- KEYS[1]  lock: hash, see prelude/rw.lua
-- KEYS[2]  queue: list of waiters, see prelude/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  right: the key that a reader's right ends with; a writer has none, so what follows is one place before
-- KEYS[5]  tombstones: zset of ids that were given up; only with ARGV[4] or KEYS[6]
-- KEYS[6]  counter: of fencing tokens; only with fencing
-- ARGV[1]  id: the owner id, with :write behind it for the write side
-- ARGV[2]  publish: command that announces the release: publish or spublish
-- ARGV[3]  offer: how to hand over, as in lock_release.lua
-- ARGV[4]  burial: given up, not released, as in lock_release.lua
--
-- Returns what lock_release.lua does; -3 also where other readers still hold it

-- prelude: queue rights redisson dead grant step_out first rw

local channel = channel_of(queue)
if is_writer(id) then
  counter, tombstones, right = tombstones, right, nil -- in this order: miniredis assigns one after the other
end
local held = redis.pcall('hexists', lock, id)
if type(held) == 'table' then
  -- prelude: wrong_type

  if not is_wrong_type(held) then
    return held
  end
  held = 0
end
local foreign, left = false, nil
if held == 1 then
  foreign, left = take_out(lock, id, right)
else
  -- prelude: wrong_type master

  local refusal = not_master(lock) -- the rest tells no errors
  if refusal then
    return refusal
  end
end
local was
if burial or held == 0 then
  -- prelude: leave

  was = redis.pcall('lindex', queue, '0')
  leave(queue, deadlines, id) -- as in lock_release.lua
  if held == 0 and not is_writer(id) then -- it may have been the write side's, and stand there as that
    leave(queue, deadlines, id .. ':write')
  end
end

local reply
local free = redis.call('exists', lock) == 0
if (held == 1 or burial) and redis.call('exists', queue) == 1 then
  -- prelude: offer turn

  local claim, turn, counted = offer_of(offer)
  local open = false
  if free and tonumber(turn) > @TURNS@ then
    open, turn = redissons_turn(queue, channel, publish), '1'
  end
  if open then
    announce(publish, channel, true)
    reply = @RELEASE_HANDED_OVER@
  else
    local now, time = server_time()
    local o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, now = now, time = time,
      claim = claim, turn = turn, counted = counted, own = inbox_of(id)}
    local granted, message = let_in(o)
    if granted > 0 then
      reply = message or @RELEASE_HANDED_OVER@
      if is_writer(id) and redis.call('hget', lock, 'mode') == 'read' then
        announce(publish, channel, true) -- Redisson's readers can come in as well
      end
    elseif o.crowded then
      reply = @RELEASE_CROWDED@
    elseif foreign or left or was then
      -- It must listen to Redisson's channel; or was told of a later end; or is the first only now, as in prelude/successor.lua.
      local next = redis.pcall('lindex', queue, '0')
      if not left and was and was ~= next then
        left = redis.call('pttl', lock)
        left = left >= 0 and math.max(left, 1)
      end
      local inbox, number = inbox_of(type(next) == 'string' and next or '')
      if inbox and (foreign or left) then
        redis.pcall('publish', inbox, 'o ' .. number .. (foreign and '' or ' ' .. left))
      end
    end
  end
end
if held == 1 and not reply then
  if free then
    reply = announce(publish, channel, is_writer(id))
  else
    reply = @RELEASE_HANDED_OVER@
  end
end
if held == 0 and type(reply) ~= 'string' and reply ~= @RELEASE_CROWDED@ then
  reply = @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
end

if burial and burial ~= '0' then
  -- prelude: bury

  bury(tombstones, id, burial)
end
return reply
