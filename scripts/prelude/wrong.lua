-- wrong.lua: prelude of the scripts that say which of their keys holds something else than it should; behind wrong_type.lua.

-- wrong returns the reply for the caller where key is not what it should be: {-1, key, what it holds}. If a command on
-- it has failed for another reason, it returns that failure.
local function wrong(key, failure)
  if type(failure) == 'table' and not is_wrong_type(failure) then
    return failure
  end
  local kind = redis.pcall('type', key)
  return {@ACQUIRE_KIND@, key, 'a ' .. (kind.ok or 'value of another type')}
end
