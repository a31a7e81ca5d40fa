-- kind.lua: prelude of the scripts that take a lock of any kind as it is.

-- kind_of returns what a key holds, free, mutex, read, write or other, and the fields and values of a
-- lock; if there are more than most (nil: no limit), only about that many. A field is an owner's only if it looks like an
-- owner id and its value is a hold count: the rest is an application's hash, and not Holdfast's to delete. An owner id
-- ends with a number, or with :write; or it is Redisson's <client>:<thread>, where a transaction has put its id behind it.
local function kind_of(key, most)
  local kind = redis.call('type', key).ok
  if kind ~= 'hash' then
    return kind == 'none' and 'free' or 'other', {}
  end
  local mode = redis.call('hget', key, 'mode')
  if mode and mode ~= 'read' and mode ~= 'write' or not mode and redis.call('hlen', key) > 1 then -- it may have millions
    return 'other', {}
  end
  local fields = most and redis.call('hlen', key) > most and redis.call('hscan', key, '0', 'count', most)[2] or redis.call('hgetall', key)
  for i = 1, #fields, 2 do
    local field, holds = fields[i], fields[i + 1]
    local owned = string.find(field, ':%-?%d+$') or mode and string.find(field, ':%-?%d+:write$')
      or string.find(field, '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d+:')
    if field ~= 'mode' and not (owned and string.find(holds, '^[1-9]%d*$')) then
      return 'other', {}
    end
  end
  return mode or 'mutex', fields
end
