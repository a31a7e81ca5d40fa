-- fence.lua: prelude of the scripts that give out fencing tokens.

-- reserve takes count tokens from a counter and returns the last of them: above seen,
-- the highest token that the caller knows of, also if the counter was lost. On failure
-- it returns nil and the reply for the caller, as wrong does; numbers of Lua are exact up to 2^53, and tokens
-- beyond would repeat.
local function reserve(counter, count, seen)
  local token = redis.pcall('incrby', counter, count)
  local behind = type(token) == 'number' and seen + count - token or 0
  if behind > 0 then
    token = redis.pcall('incrby', counter, behind)
  end
  if type(token) == 'number' and token < @TOKEN_END@ then
    return token
  end
  local text = redis.pcall('get', counter)
  if type(text) == 'string' and (type(token) == 'number' or string.find(token.err, 'integer', 1, true) or string.find(token.err, 'overflow', 1, true)) then
    return nil, {@ACQUIRE_KIND@, counter, '"' .. string.sub(text, 1, @CLIP@) .. '", which is no number below 2^53'}
  end
  -- prelude: wrong_type wrong

  return nil, wrong(counter, token)
end
