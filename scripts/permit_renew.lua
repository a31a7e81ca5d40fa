-- permit_renew.lua: keep permits of semaphores alive, each claim by itself. It extends and never shortens, and gives no permit back
-- that has ended.
--
-- KEYS[2i-1]  available: of the i-th claim: how many permits are: number
-- KEYS[2i]    held: the permits that are not: zset, see lib/permit.lua
-- ARGV[1]     lease: TTL, milliseconds
-- ARGV[1+i]   permits: the ids of the permits of the i-th claim, one behind the other
--
-- Returns an array with an answer for each claim, as renew.lua does

-- include: keys permit queue

local codes, now = {}, server_time()
for i = 1, #KEYS / 2 do
  local refusal = i == 1 and not_master(available)
  if refusal and string.find(refusal.err, 'READONLY', 1, true) then -- an ACL that forbids HDEL does not end a lease
    return refusal
  end
  local kept = split(permits)
  local live, said = left_of(held, kept, now)
  if live then
    said = redis.pcall('zadd', held, 'xx', 'gt', unpack(ends_of(kept, now + lease)))
    outlast(available, held, now)
  end
  if type(said) == 'table' then
    codes[i] = is_wrong_type(said) and @RENEW_STOLEN@ or said.err
  else
    codes[i] = live and @RENEW_DONE@ or @RENEW_GONE@
  end
end
return codes
