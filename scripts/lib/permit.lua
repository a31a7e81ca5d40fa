-- permit.lua: library of the permits of a semaphore. They are in the two keys of Redisson's RPermitExpirableSemaphore: a number, how
-- many are available, and a zset of those that are held, permit id -> end, in milliseconds of server time. A permit's id has 16 bytes.
-- Those of Holdfast begin with the first ten of the manager's UUID, and its number follows, which has a 1 in front if the permit is left
-- to a ticket. The owner id of a claim of n permits, of the numbers from the first on, is hf-<manager>:<first>:<n>.
--
-- Each prefix of the writes here loses or lends no permit: available and held ones together stay the same.

-- include: keys queue redisson

-- size_of returns how many permits a claim is for.
local function size_of(id)
  return tonumber(string.match(id, ':%d+:(%d+)$') or 0)
end

-- digits_of returns the hexadecimal digits of a permit's id.
local function digits_of(permit)
  return (string.gsub(permit, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end

-- bytes_of returns what such digits stand for.
local function bytes_of(digits)
  return (string.gsub(digits, '%x%x', function(byte) return string.char(tonumber(byte, 16)) end))
end

-- split returns the ids in a text of ids.
local function split(text)
  local permits = {}
  for at = 1, #text, @PERMIT@ do
    permits[#permits + 1] = string.sub(text, at, at + @PERMIT@ - 1)
  end
  return permits
end

-- permits_of returns the ids of the permits of a claim of any process. It takes ten times as long as split.
local function permits_of(id)
  local uuid, first = string.match(id, '^hf%-([%x%-]+):(%d+)')
  local manager = bytes_of(string.sub(string.gsub(uuid, '%-', ''), 1, @PERMIT_MANAGER@))
  local permits, upper = {}, nil
  for number = tonumber(first), tonumber(first) + size_of(id) - 1 do
    if not upper or number % 256 == 0 then
      upper = manager .. bytes_of(string.format('%010x', math.floor(number / 256)))
    end
    permits[#permits + 1] = upper .. string.char(number % 256)
  end
  return permits
end

-- ends_of returns what ZADD takes to let permits end at a time.
local function ends_of(permits, time)
  local ends, text = {}, string.format('%.0f', time)
  for i, permit in ipairs(permits) do
    ends[2 * i - 1], ends[2 * i] = text, permit
  end
  return ends
end

-- number_of returns how many permits are available; nil, and what GET said, if the key holds no such number as INCRBY takes.
local function number_of(available)
  local text = redis.pcall('get', available)
  local number = type(text) == 'string' and (text == '0' or string.find(text, '^%-?[1-9]%d*$')) and tonumber(text)
  if number and math.abs(number) < @TOKEN_END@ then
    return number
  end
  return nil, text
end

-- count_of returns how many permits are available, and how many are not: where the number is missing, those of total that no one holds
-- are, and that number lasts for idle milliseconds, if they are given, and as long as those that are held. It returns nil, and an answer, if
-- a key is none of its kind.
local function count_of(available, held, total, idle)
  local members, count, text = redis.pcall('zcount', held, '-inf', '+inf'), number_of(available)
  if type(members) == 'table' then
    return nil, wrong(held, members)
  elseif type(text) == 'table' then
    return nil, wrong(available, text)
  elseif text then
    return nil, {@ACQUIRE_KIND@, available, '"' .. string.sub(text, 1, @CLIP@) .. '", which is no number'}
  end
  if not count then
    count = redis.call('incrby', available, total - members)
    if idle then
      redis.pcall('pexpire', available, math.max(idle, redis.call('pttl', held)))
    end
  end
  return count, members
end

-- collect makes the permits available whose time is over, and returns how many there were.
local function collect(available, held, now)
  local ended = redis.call('zcount', held, '-inf', now)
  if ended > 0 then
    redis.call('incrby', available, ended)
    if type(redis.pcall('zremrangebyscore', held, '-inf', now)) == 'table' then -- refused, as by an ACL
      redis.call('incrby', available, -ended)
      return 0
    end
  end
  return ended
end

-- outlast has the two keys, which go together, last for as long as each permit, if they end at all: for idle milliseconds at least.
local function outlast(available, held, now, idle)
  local left = tonumber(idle or math.max(redis.call('pttl', available), redis.call('pttl', held)))
  if left >= 0 then
    left = math.max(left, redis.call('zrange', held, '-1', '-1', 'withscores')[2] - now)
    redis.pcall('pexpire', available, left)
    redis.pcall('pexpire', held, left)
  end
end

-- give gives a claim its permits for a time, of those that are available. It takes none twice, and shortens none. It returns nil, or
-- what Redis said.
local function give(available, held, permits, now, time, idle)
  local added = redis.pcall('zadd', held, 'gt', unpack(ends_of(permits, now + time)))
  if type(added) == 'table' then
    return added
  end
  local taken = added > 0 and redis.pcall('incrby', available, -added)
  if type(taken) == 'table' then -- refused, as by an ACL
    redis.call('zrem', held, unpack(permits))
    return taken
  end
  outlast(available, held, now, idle)
end

-- take_away makes the permits of a claim available. It returns how many it had, or what Redis said.
local function take_away(available, held, permits)
  local had = redis.pcall('zrem', held, unpack(permits))
  if type(had) == 'number' and had > 0 and number_of(available) then -- else the next acquire counts
    local said = redis.pcall('incrby', available, had)
    if type(said) == 'table' then -- refused, as by an ACL: they are as others that have ended
      redis.call('zadd', held, unpack(ends_of(permits, 0), 1, 2 * had))
      return said
    end
  end
  return had
end

-- left_of returns for how many milliseconds permits are held yet; nil, and what Redis said, if one of them is not held any more.
local function left_of(held, permits, now)
  local left = math.huge
  for _, permit in ipairs(permits) do
    local ends = redis.pcall('zscore', held, permit)
    local rest = type(ends) == 'string' and ends - now or 0
    if rest <= 0 then
      return nil, ends
    end
    left = math.min(left, rest)
  end
  return left
end

-- line_of returns the table of grant.lua for a semaphore, whose waiters are granted permits while enough are available.
local function line_of(available, queue, deadlines, held, now)
  return {
    lock = available, queue = queue, deadlines = deadlines, channel = channel_of(queue),
    room = function(id)
      local function enough()
        return tonumber(redis.call('get', available)) >= size_of(id)
      end
      return enough() or collect(available, held, now) > 0 and enough()
    end,
    add = function(_, id, claim)
      return give(available, held, permits_of(id), now, claim)
    end,
    remove = function(_, id)
      take_away(available, held, permits_of(id))
    end,
  }
end

-- next_end returns in how many milliseconds the first of the permits ends, -1 if none does within a day; and 1 if one of them is not
-- Holdfast's, else 0. It looks at the first and the last of them.
local function next_end(held, now)
  local first = redis.call('zrange', held, '0', '0', 'withscores')[2]
  local left, foreign = first and math.max(tonumber(first) - now, 1) or -1, 0
  for _, from in ipairs({'0', '-@BEHIND@'}) do
    for _, permit in ipairs(redis.call('zrange', held, from, from == '0' and '@BEHIND@' or '-1')) do
      foreign = string.find(permit, @OUR_PERMIT@) and foreign or 1
    end
  end
  return left < @QUEUE_TTL@ and left or -1, foreign
end

-- replace_permits has the permits of one claim become those of another, for a time. It returns for how many milliseconds they were held
-- yet; nil if one was not, and nothing is changed. Waiters do not know of an earlier end. All are told, because those behind the first
-- would not learn of it when that one goes.
local function replace_permits(available, queue, held, old, new, now, time)
  local left = left_of(held, old, now)
  if left then
    redis.call('zadd', held, unpack(ends_of(new, now + time)))
    redis.call('zrem', held, unpack(old))
    outlast(available, held, now)
    local ends = left > tonumber(time) and next_end(held, now) or 0
    if ends > 0 then
      notify_all(queue, ends)
    end
  end
  return left
end
