-- proclaim.lua: what the leader of an election says of itself, or that it leads no more. Only who holds the lock is heard.
--
-- KEYS[1]  lock: hash, see lock_acquire.lua
-- KEYS[2]  record: hash: owner, token, news, value; it counts while that owner holds the lock. Its name is also that of the channel
--          on which each change is told, by the token of the term, or 0
-- ARGV[1]  owner: the id of the leader
-- ARGV[2]  token: the number of its term
-- ARGV[3]  news: the number of this request in the term; a late copy of an earlier one changes nothing
-- ARGV[4]  value: what the leader says of itself
-- ARGV[5]  leads: 1; 0: the term ends, and the record has no value
-- ARGV[6]  publish: command that announces the change: publish or spublish
--
-- Returns 1  the record says so, or something later of this term
--         0  this owner does not hold the lock, or has a later term
--         {-1, key, text}
--            one of the keys holds something else than its kind; text says what

-- include: keys redisson

local holds = redis.pcall('hexists', lock, owner)
if holds == 0 then
  return not_master(lock) or 0
elseif holds ~= 1 then
  return wrong(lock, holds)
end
local speaker = redis.pcall('hget', record, 'owner')
if type(speaker) == 'table' then
  return wrong(record, speaker)
elseif speaker == owner then
  local term, latest = tonumber(redis.call('hget', record, 'token')), tonumber(redis.call('hget', record, 'news'))
  if not term or not latest then
    return wrong(record)
  elseif term > tonumber(token) then
    return 0
  elseif term == tonumber(token) and latest >= tonumber(news) then
    return 1
  end
end
redis.call('hset', record, 'owner', owner, 'token', token, 'news', news)
if leads == '1' then
  redis.call('hset', record, 'value', value)
else
  redis.call('hdel', record, 'value')
end
local refused = expire(record, '@RECORD_TTL@')
if refused then
  return no_ttl(refused)
end
tell(publish, record, leads == '1' and token or '0')
return 1
