-- inspect.lua: what is known about a lock of any kind. It writes nothing, and its work is bounded: it looks at
-- @INSPECTED@ fields and as many rights, or permits, which takes 5 ms, and shows @SHOWN@ holders and @QUEUED@ places.
--
-- KEYS[1]  lock: of any kind
-- KEYS[2]  counter: of fencing tokens
-- KEYS[3]  queue: of a mutex or fair lock: list
-- KEYS[4]  deadlines: zset that belongs to it
-- KEYS[5]  rw_queue: of a read-write lock: list
-- KEYS[6]  rw_deadlines: zset that belongs to it
-- KEYS[7]  held: of a semaphore, whose own key is a number: zset, see lib/permit.lua
-- KEYS[8]  permit_queue: of a semaphore: list
-- KEYS[9]  permit_deadlines: zset that belongs to it
--
-- Returns {kind, ttl, token, waiters, overdue, ended, more, holders, broken, queued, permits, available}: what the key holds (free,
-- mutex, read, write, semaphore, other), its PTTL, the fencing counter, how many places in the queues still count and how many do
-- not, how many readers' rights or permits have ended, how many holders are not shown, {field, value, PTTL, ...} of those
-- that are, {key, what it holds, ...} of keys that hold something else than they should, the owner ids of the first
-- places, and of a semaphore how many permits it has and how many are available

-- include: keys queue rights permit

local broken = {}

-- checked returns the reply of a command about a key; 0 if the key is of another type.
local failure
local function checked(reply, key)
  if type(reply) ~= 'table' then
    return reply
  end
  if is_wrong_type(reply) then
    broken[#broken + 1] = key
    broken[#broken + 1] = redis.call('type', key).ok
  else
    failure = reply
  end
  return 0
end

local text = checked(redis.pcall('get', counter), counter)
local token = tonumber(text or nil) or 0
if text and text ~= 0 and not ((text == '0' or string.find(text, '^%-?[1-9]%d*$')) and token < @TOKEN_END@) then
  broken[#broken + 1] = counter
  broken[#broken + 1] = 'string that is no number below 2^53'
  token = 0
end

local now = server_time()
local waiters, overdue, queued = 0, 0, {}
local function count(queue, deadlines)
  local places = checked(redis.pcall('llen', queue), queue)
  local over = math.min(places, checked(redis.pcall('zcount', deadlines, '-inf', now), deadlines))
  if over > 0 and places <= @INSPECTED@ then -- times may be of waiters that are no longer in the list
    over = 0
    for _, id in ipairs(redis.call('lrange', queue, '0', '-1')) do
      if tonumber(redis.call('zscore', deadlines, id) or now + 1) <= now then
        over = over + 1
      end
    end
  end
  waiters, overdue = waiters + places - over, overdue + over
  if places > 0 and #queued < @QUEUED@ then
    for _, id in ipairs(redis.call('lrange', queue, '0', @QUEUED@ - #queued - 1)) do
      queued[#queued + 1] = id
    end
  end
end
count(queue, deadlines)
count(rw_queue, rw_deadlines)
count(permit_queue, permit_deadlines)
local available = number_of(lock)
local permits = checked(redis.pcall('zcount', held, '-inf', '+inf'), held)
if failure then
  return failure
end

local kind, fields = kind_of(lock, @INSPECTED@)
local ttl = redis.call('pttl', lock)
local holders, ended, looks = {}, 0, @INSPECTED@
local more = 0
if #fields > 0 then
  more = redis.call('hlen', lock) - (kind == 'mutex' and 0 or 1) -- mode
end
for i = 1, #fields, 2 do
  local field, holds, left = fields[i], fields[i + 1], ttl
  local looked = field ~= 'mode'
  if looked and kind ~= 'mutex' and not (is_writer(field) or string.find(field, ':%-?%d+:write')) then
    left = -2
    for n = 1, math.min(tonumber(holds), looks + 1) do
      looked = looks > 0
      if not looked then
        break
      end
      looks = looks - 1
      local right = redis.call('pttl', right_of(lock, field, n))
      left = (left == -1 or right == -1) and -1 or math.max(left, right)
    end
    looked = looked or left ~= -2
  end
  if looked and left == -2 then
    ended, more = ended + 1, more - 1
  elseif looked and #holders < 3 * @SHOWN@ then
    more = more - 1
    holders[#holders + 1] = field
    holders[#holders + 1] = holds
    holders[#holders + 1] = left
  end
end
if available or kind == 'free' and permits > 0 then
  kind = 'semaphore'
  ended = permits > 0 and redis.call('zcount', held, '-inf', now) or 0 -- else it may be something else
  more = permits - ended
  local members = more > 0 and redis.call('zrange', held, ended, ended + @SHOWN@ - 1, 'withscores') or {}
  for i = 1, #members, 2 do
    holders[#holders + 1] = digits_of(members[i])
    holders[#holders + 1] = '1'
    holders[#holders + 1] = members[i + 1] - now < @FOREVER@ and members[i + 1] - now or -1
    more = more - 1
  end
end
return {kind, ttl, math.max(token, 0), waiters, overdue, ended, more, holders, broken, queued, (available or 0) + permits, available or 0}
