-- introduce.lua: what a process says of itself, for people who look at its locks.
--
-- KEYS[1]     process: hash
-- ARGV[1]     lease: TTL, milliseconds; 0: the process ends
-- ARGV[2...]  field, value, field, value, ...
--
-- Returns 1

-- include: keys

if lease == '0' then
  redis.call('del', process)
  return 1
end
redis.call('hset', process, unpack(ARGV, 2))
return expire(process, lease) or 1
