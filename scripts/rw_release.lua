-- rw_release.lua: give a side of a read-write lock back, if the owner id still holds it, and let in the waiters that can come in now.
--
-- KEYS[1]  lock: hash, see lib/rights.lua
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
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

-- include: queue grant redisson rights keys

if is_writer(id) then
  counter, tombstones, right = tombstones, right, nil -- in this order: miniredis assigns one after the other
end
local held = redis.pcall('hexists', lock, id)
if type(held) == 'table' and not is_wrong_type(held) then
  return held
end
held = held == 1
local foreign, left, was
if held then
  foreign, left = remove_side(lock, id, right)
else
  local refusal = not_master(lock) -- the rest tells no errors
  if refusal then
    return refusal
  end
end
local channel, free, waiting = channel_of(queue), redis.call('exists', lock) == 0, redis.call('exists', queue) == 1
if held and not burial and not waiting then -- the common case: no waiter in the queue
  return free and announce(publish, channel, is_writer(id)) or @RELEASE_HANDED_OVER@
end
if burial or not held then
  was = head(queue)
  leave(queue, deadlines, id) -- as in lock_release.lua
  if not held and not is_writer(id) then -- it may have been the write side's, and stand there as that
    leave(queue, deadlines, id .. ':write')
  end
  waiting = burial and redis.call('exists', queue) == 1
end

local reply
local o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, publish = publish, channel = channel,
  own = inbox_of(id), sides = true, add = put_side, remove = remove_side}
if waiting then
  reply = pass_on(o, offer, free)
  if reply and reply ~= @RELEASE_CROWDED@ then
    if is_writer(id) and redis.call('hget', lock, 'mode') == 'read' then
      announce(publish, channel, true) -- Redisson's readers can come in as well
    end
  elseif not reply and foreign then
    notify(head(queue), 'o') -- it must listen to Redisson's channel
  elseif not reply and left then
    notify(head(queue), 'o', left)
  elseif not reply and was then
    notify_next(lock, queue, was)
  end
end
reply = released(o, reply, held, free, is_writer(id))
bury(tombstones, id, burial)
return reply
