-- introduce.lua: what a process says of itself, for people who look at its locks.
--
-- KEYS[1]    process: hash
-- ARGV[1]    lease: TTL, milliseconds; 0: the process ends
-- ARGV[i]    field, value, field, value, ...
--
-- Returns 1

local fields = {}
for i = 2, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
if lease == '0' then
  redis.call('del', process)
  return 1
end
redis.call('hset', process, unpack(fields))

-- prelude: expire

return expire(process, lease) or 1
