-- leader.lua: who leads an election. It writes nothing.
--
-- KEYS[1]  lock: hash, see lock_acquire.lua
-- KEYS[2]  record: hash, see proclaim.lua
-- KEYS[3]  counter: of fencing tokens
--
-- Returns {0, ttl}
--            none leads: the lock is free, its holder has not said that it leads, or has said that it leads no more. ttl: for how many
--            milliseconds there is a holder, -1 if without TTL, -2 if there is none
--         {1, ttl, owner, token, value}
--            owner leads in the term of that number, a text. A fenced lock of Redisson has no record: its term is that of the counter,
--            and its value is empty
--         {-1, key, text}
--            one of the keys holds something else than its kind; text says what

-- include: keys queue

local kind, fields = kind_of(lock, 2)
if kind ~= 'mutex' and kind ~= 'free' then
  return wrong(lock)
end
local speaker = redis.pcall('hget', record, 'owner')
if type(speaker) == 'table' then
  return wrong(record, speaker)
end
local ttl, owner = redis.call('pttl', lock), fields[1]
if owner and owner == speaker then
  local value = redis.call('hget', record, 'value')
  return value and {@SEAT_TAKEN@, ttl, owner, redis.call('hget', record, 'token'), value} or {@SEAT_VACANT@, ttl}
end
local last = owner and not inbox_of(owner) and redis.pcall('get', counter)
if type(last) == 'string' then
  return {@SEAT_TAKEN@, ttl, owner, last, ''}
end
return {@SEAT_VACANT@, ttl}
