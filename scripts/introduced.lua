-- introduced.lua: what a process has said of itself. It writes nothing.
--
-- KEYS[1]  process: hash
--
-- Returns {n, field, value, ...} with n fields; {0} if the process has said nothing, or the key is none of its kind

-- include: keys

local count = redis.pcall('hlen', process)
if type(count) == 'table' then
  return is_wrong_type(count) and {0} or count
elseif count > @FIELDS@ then
  return {0}
end
return {count, unpack(redis.call('hgetall', process))}
