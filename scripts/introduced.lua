-- introduced.lua: what a process has said of itself. It writes nothing.
--
-- KEYS[1]  process: hash
--
-- Returns {n, field, value, ...} with n fields; {0} if the process has said nothing, or the key is none of its kind

local count = redis.pcall('hlen', process)
if type(count) == 'table' and not string.find(count.err, 'WRONGTYPE', 1, true) then
  return count
end
if type(count) == 'table' or count > @FIELDS@ then
  return {0}
end
local fields = redis.call('hgetall', process)
return {count, unpack(fields)}
