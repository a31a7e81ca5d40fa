-- introduced.lua: what a process has said of itself. It writes nothing.
--
-- KEYS[1]  process: hash
--
-- Returns {n, field, value, ...} with n fields; {0} if the process has said nothing, or the key is none of its kind

-- include: answer

local count = redis.pcall('hlen', process)
if is_wrong_type(count) then
  return {0}
elseif type(count) == 'table' then
  return count
elseif count > @FIELDS@ then
  return {0}
end
local fields = redis.call('hgetall', process)
return {count, unpack(fields)}
