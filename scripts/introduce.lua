-- introduce.lua: what a process says of itself, for people who look at its locks.
--
-- KEYS[1]    the process: hash
-- ARGV[1]    TTL, milliseconds; 0: the process ends
-- ARGV[i]    field, value, field, value, ...
--
-- Returns 1

local fields = {}
for i = 2, #ARGV do
  fields[#fields + 1] = ARGV[i]
end
if ARGV[1] == '0' then
  redis.call('del', KEYS[1])
  return 1
end
redis.call('hset', KEYS[1], unpack(fields))
local set = redis.pcall('pexpire', KEYS[1], ARGV[1])
if set ~= 1 then
  redis.call('del', KEYS[1]) -- never leave a key without TTL
  return set
end
return 1
