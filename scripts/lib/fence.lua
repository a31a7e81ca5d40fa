-- fence.lua: library of fencing tokens. Numbers of Lua are exact up to 2^53, and tokens beyond would repeat.

-- include: keys

-- reserve takes count tokens from a counter and returns the last of them: above seen, the highest that the caller knows of, also if
-- the counter was lost. Without fencing, where count is nil, it returns 0. On failure it returns nil, and what the counter said. It
-- comes before the lock is written: a skipped token does no harm.
local function reserve(counter, count, seen)
  if not count then
    return 0
  end
  local token = redis.pcall('incrby', counter, count)
  local behind = type(token) == 'number' and seen + count - token or 0
  if behind > 0 then
    token = redis.pcall('incrby', counter, behind)
  end
  if type(token) == 'number' and token < @TOKEN_END@ then
    return token
  end
  return nil, token
end

-- no_token returns what a script answers where reserve has failed.
local function no_token(counter, said)
  local text = redis.pcall('get', counter)
  if type(text) == 'string' and (type(said) == 'number' or string.find(said.err, 'integer', 1, true) or string.find(said.err, 'overflow', 1, true)) then
    return {@ACQUIRE_KIND@, counter, '"' .. string.sub(text, 1, @CLIP@) .. '", which is no number below 2^53'}
  end
  return wrong(counter, said)
end
