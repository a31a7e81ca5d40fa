-- lock_release.lua: give a mutex or a fair lock back, if the owner id still holds it: to the next waiter, if there is one.
--
-- KEYS[1]  lock: hash, owner id -> hold count
-- KEYS[2]  queue: list of waiters, see lib/queue.lua
-- KEYS[3]  deadlines: zset that belongs to the queue
-- KEYS[4]  tombstones: zset of owner ids that were given up; only with ARGV[4] or KEYS[5]
-- KEYS[5]  counter: of fencing tokens; only with fencing
-- ARGV[1]  owner: its id
-- ARGV[2]  publish: command that announces the release: publish or spublish
-- ARGV[3]  offer: how to hand over, "<claim> <turn> <counted>", see lib/grant.lua
-- ARGV[4]  burial: given up, not released: the owner id leaves the queue; and milliseconds for which a late acquire of it is to be
--          refused, 0 where none can be under way
--
-- An owner that does not hold it, and stands in the queue, has lost a grant with a fail-over: it leaves the queue as well.
--
-- Returns  n        released, no waiter is in the queue or none could be granted it, and n clients were listening
--                   (in a cluster: on this node)
--          message  granted to a waiter of the caller's, see lib/grant.lua
--         -1        not held by this owner, nor by another
--         -2        not held by this owner but by another one
--         -3        granted to another waiter, or left open for one of Redisson's
--         -4        it is free, but so many in front are dead that one request does not remove them all: the same with ARGV[4] goes on

-- include: queue grant redisson keys

local try, channel = redis.pcall, 'redisson_lock__channel' .. string.sub(queue, #'redisson_lock_queue' + 1)
local removed = try('hdel', lock, owner) -- the last field takes the key with it
local next = try('lindex', queue, '0')
if removed == 1 and not burial and not next then
  local heard = try(publish, channel, '0') -- the common case: no waiter in the queue
  if heard == 0 or type(heard) == 'number' then
    return heard
  end
end

-- The common case of a hand-over: the next waiter is Holdfast's and hears, no place is overdue, and it is not Redisson's turn. All wait
-- for it, so it does what pass_on does without a table and with two functions, and reads and writes hardly a number: with
-- ZSCORE and a comparison the server took a fifth longer. A place that ends in this second counts as kept until that is over.
if removed == 1 and not burial and type(next) == 'string' then
  local uuid, number = string.match(next, '^hf%-([%x%-]+):(%d+)')
  local claim, turn, counted = string.match(offer, '^(%d+) (%d+) (%d)')
  local time, inbox = redis.call('time'), 'holdfast_inbox:' .. (uuid or '')
  local own, over = uuid == string.match(owner, '^hf%-([%x%-]+)'), #turn > 1 and tonumber(turn) > @TURNS@
  if uuid and not (over and listeners(publish, channel) > 0) and try('zcount', deadlines, '-inf', '(' .. time[1] .. '000') == 0
    and (own or counted == '0' or try('pubsub', 'numsub', inbox)[2] ~= 0) then
    local more = redis.call('lindex', queue, '1')
    local message = message_of(counter, number, claim, time, over and '1' or turn, more)
    redis.call('hset', lock, next, '1')
    if try('pexpire', lock, claim) == 1 then
      if not own then
        try('publish', inbox, message)
      end
      if more then
        redis.call('lpop', queue)
        redis.call('zrem', deadlines, next)
      else
        redis.call('del', queue, deadlines)
      end
      return own and message or @RELEASE_HANDED_OVER@
    end
    redis.call('hdel', lock, next)
  end
end

if type(removed) == 'table' and not is_wrong_type(removed) then
  return removed
end
local free = removed == 1
if burial or not free then
  leave(queue, deadlines, owner)
  free = free or burial and redis.call('exists', lock) == 0
end
if not free then
  notify_next(lock, queue, next)
  bury(tombstones, owner, burial)
  return @RELEASE_GONE@ - redis.call('exists', lock) -- one less if another owner holds it
end

local o = {lock = lock, queue = queue, deadlines = deadlines, counter = counter, publish = publish, channel = channel,
  own = inbox_of(owner), add = put, remove = take_back, leave_to = leave_to_redisson}
local reply = released(o, head(queue) and pass_on(o, offer, free), removed == 1, free)
bury(tombstones, owner, burial)
return reply
