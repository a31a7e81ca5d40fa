-- wrong.lua: prelude of the scripts that say which of their keys holds something else than it should; behind wrong_type.lua.

-- wrong returns the reply for the caller where key is not what it should be: {-1, key, what it holds}. If a command on
-- it has failed for another reason, it returns that failure.
local function wrong(key, failure)
  if type(failure) == 'table' and not is_wrong_type(failure) then
    return failure
  end
  local holds = redis.pcall('type', key).ok
  if holds == 'hash' then
    local mode = redis.pcall('hget', key, 'mode')
    if mode == 'read' or mode == 'write' then
      holds = 'read-write lock'
    elseif redis.pcall('hlen', key) == 1 and string.find(redis.pcall('hkeys', key)[1] or '', ':%-?%d+$') then
      holds = 'mutex or fair lock'
    end
  end
  return {@ACQUIRE_KIND@, key, 'a ' .. (holds or 'value of another type')}
end
