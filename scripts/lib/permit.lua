-- permit.lua: library of the permits of a semaphore. They are in the two keys of Redisson's RPermitExpirableSemaphore: a number, how
-- many are available, and a zset of those that are held, permit id -> end, in milliseconds of server time. A permit's id has 16 bytes.
-- Those of Holdfast begin with the first ten of the manager's UUID, and its number follows. The owner id of a claim of n permits, of
-- the numbers from the first on, is hf-<manager>:<first>:<n>.
--
-- Each prefix of the writes here loses or lends no permit: available and held ones together stay the same.

-- include: answer queue redisson

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

-- permits_of returns the ids of the permits of a claim.
local function permits_of(id)
  local uuid, first = string.match(id, '^hf%-([%x%-]+):(%d+):')
  local manager = bytes_of(string.sub(string.gsub(uuid or '', '%-', ''), 1, @PERMIT_MANAGER@))
  local permits, upper = {}, nil
  for number = tonumber(first or 1), tonumber(first or 1) + size_of(id) - 1 do
    if not upper or number % 256 == 0 then
      upper = manager
      for byte = 5, 1, -1 do
        upper = upper .. string.char(math.floor(number / 256 ^ byte) % 256)
      end
    end
    permits[#permits + 1] = upper .. string.char(number % 256)
  end
  return permits
end

-- collect makes the permits available whose time is over, and returns how many there were.
local function collect(available, held, now)
  local ended = redis.call('zcount', held, '-inf', now)
  if ended > 0 then
    redis.call('incrby', available, ended)
    redis.call('zremrangebyscore', held, '-inf', now)
  end
  return ended
end

-- count_of returns how many permits are available: where the number is missing, those of total that no one holds. It returns nil, and
-- an answer, if a key is none of its kind.
local function count_of(available, held, total, now)
  local text, kind = redis.pcall('get', available), redis.call('type', held).ok
  if type(text) == 'table' then
    return nil, wrong(available, text)
  elseif text and not string.find(text, '^%-?%d+$') then
    return nil, {@ACQUIRE_KIND@, available, '"' .. string.sub(text, 1, @CLIP@) .. '", which is no number'}
  elseif kind ~= 'none' and kind ~= 'zset' then
    return nil, wrong(held)
  elseif not text then
    redis.call('zremrangebyscore', held, '-inf', now)
    return redis.call('incrby', available, total - redis.call('zcount', held, '-inf', '+inf'))
  end
  return tonumber(text)
end

-- give gives a claim its permits, of those that are available, until a time. It takes none twice, and shortens none. It returns nil, or
-- what Redis said.
local function give(available, held, id, until_then)
  local pairs_of, permits = {}, permits_of(id)
  for _, permit in ipairs(permits) do
    pairs_of[#pairs_of + 1], pairs_of[#pairs_of + 2] = until_then, permit
  end
  if #permits == 0 then
    return
  end
  local missing = 0
  for _, permit in ipairs(permits) do
    missing = missing + (redis.call('zscore', held, permit) and 0 or 1)
  end
  local said = missing > 0 and redis.pcall('incrby', available, -missing)
  if type(said) == 'table' then
    return said
  end
  said = redis.pcall('zadd', held, 'gt', unpack(pairs_of))
  if type(said) == 'table' then
    redis.call('incrby', available, missing)
    return said
  end
  local left = redis.call('pttl', available)
  if left >= 0 then -- the two keys go together
    redis.pcall('pexpire', held, left)
  end
end

-- take_away makes the permits of a claim available. It returns how many it had, or what Redis said.
local function take_away(available, held, id)
  local permits, had = permits_of(id), 0
  for _, permit in ipairs(permits) do
    local score = redis.pcall('zscore', held, permit)
    if type(score) == 'table' then
      return score
    end
    had = had + (score and 1 or 0)
  end
  if had > 0 and redis.call('exists', available) == 1 then -- else the next acquire counts
    local said = redis.pcall('incrby', available, had)
    if type(said) == 'table' then
      return said
    end
  end
  if had > 0 then
    redis.call('zrem', held, unpack(permits))
  end
  return had
end

-- line_of returns the table of grant.lua for a semaphore, whose waiters are granted permits while enough are available.
local function line_of(available, queue, deadlines, held, now)
  return {
    lock = available, queue = queue, deadlines = deadlines, channel = channel_of(queue),
    room = function(id)
      local n = size_of(id)
      local function enough()
        return tonumber(redis.call('get', available) or 0) >= n
      end
      return enough() or collect(available, held, now) > 0 and enough()
    end,
    add = function(_, id, claim)
      return give(available, held, id, now + claim)
    end,
    remove = function(_, id)
      take_away(available, held, id)
    end,
  }
end

-- next_end returns in how many milliseconds the first of the permits ends, -1 if none does within a day; and whether one of them is
-- not Holdfast's. It looks at the first and the last of them.
local function next_end(held, now)
  local first = redis.call('zrange', held, '0', '0', 'withscores')[2]
  local left = first and math.max(tonumber(first) - now, 1) or -1
  for _, from in ipairs({'0', '-@BEHIND@'}) do
    for _, permit in ipairs(redis.call('zrange', held, from, from == '0' and '@BEHIND@' or '-1')) do
      if not string.find(digits_of(permit), @OUR_PERMIT@) then
        return left < @QUEUE_TTL@ and left or -1, 1
      end
    end
  end
  return left < @QUEUE_TTL@ and left or -1, 0
end
