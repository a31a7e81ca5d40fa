-- fence.lua: prelude of the scripts that give out fencing tokens.

-- reserve takes count tokens from a counter and returns the last of them: above seen,
-- the highest token that the caller knows of, also if the counter was lost. On failure
-- it returns nil and the reply for the caller; numbers of Lua are exact up to 2^53, and tokens
-- beyond would repeat.
local function reserve(counter, count, seen)
  local token = redis.pcall('incrby', counter, count)
  if type(token) ~= 'number' then
    if string.find(token.err, 'WRONGTYPE', 1, true) or string.find(token.err, 'not an integer', 1, true) then
      return nil, {-1, 0}
    end
    return nil, token
  end
  local behind = seen + count - token
  if behind > 0 then
    token = redis.call('incrby', counter, behind)
  end
  if token >= 2 ^ 53 then
    return nil, redis.error_reply('HOLDFAST the fencing counter has reached 2^53')
  end
  return token
end
