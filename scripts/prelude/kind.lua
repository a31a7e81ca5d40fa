-- kind.lua: prelude of the scripts that take a lock of any kind as it is.

-- kind_of returns what a key holds, free, mutex, read, write or other, and the fields and values of a
-- lock; if there are more than most (nil: no limit), only about that many. A field is an owner's only if it is an
-- owner id and its value is a hold count: the rest is an application's hash, and not Holdfast's to delete. An owner id
-- is <UUID>:<number> of Redisson, hf-<UUID>:<number> of Holdfast; a write lock or a transaction puts :<text> behind it.
local function kind_of(key, most)
  local kind = redis.call('type', key).ok
  if kind ~= 'hash' then
    return kind == 'none' and 'free' or 'other', {}
  end
  local mode = redis.call('hget', key, 'mode')
  local size = redis.call('hlen', key) -- an application's may have millions of fields
  if mode and mode ~= 'read' and mode ~= 'write' or not mode and size > 1
    or mode and size == 1 and redis.call('pttl', key) == -1 then -- with a TTL it is what a denied release has left
    return 'other', {}
  end
  local fields = most and size > most and redis.call('hscan', key, '0', 'count', most)[2] or redis.call('hgetall', key)
  local four = '%x%x%x%x'
  local owner = '^' .. four .. four .. '%-' .. four .. '%-' .. four .. '%-' .. four .. '%-' .. four .. four .. four .. ':%-?%d+:'
  for i = 1, #fields, 2 do
    local field, holds = fields[i], fields[i + 1]
    local id = string.sub(field, 1, 3) == 'hf-' and string.sub(field, 4) or field
    if field ~= 'mode' and not (string.find(id .. ':', owner) and string.find(holds, '^[1-9]%d*$')) then
      return 'other', {}
    end
  end
  return mode or 'mutex', fields
end
