-- renew_read.lua: keep read holds alive, each by its own right, which is not made again once it has ended. Other readers' rights are
-- left alone, unless another client has taken the lock's TTL away: then survivors looks at them.
--
-- KEYS[2i-1]  lock: the i-th: hash, see lib/rights.lua
-- KEYS[2i]    right: the key that the i-th reader's right ends with
-- ARGV[1]     lease: TTL, milliseconds
-- ARGV[2]     prefix: what the owner ids begin with
-- ARGV[2+i]   tail: what the i-th owner id ends with
--
-- Returns an array with an answer for each reader, as renew.lua does

-- include: keys rights

local ttl, codes = tonumber(lease), {}
for i = 1, #KEYS / 2 do
  local refusal = i == 1 and not_master(lock)
  if refusal and string.find(refusal.err, 'READONLY', 1, true) then -- an ACL that forbids HDEL does not end a lease
    return refusal
  end
  local held, left = redis.pcall('hexists', lock, prefix .. tail), redis.call('pttl', right)
  if held == 1 and (left > 0 or left == -1) then -- -1: another client has made it so
    local set = left >= ttl or redis.pcall('pexpire', right, ttl)
    local whole = type(set) ~= 'table' and redis.call('pttl', lock)
    if whole == -1 then
      survivors(lock)
    elseif whole and whole < ttl then
      set = redis.pcall('pexpire', lock, ttl)
    end
    codes[i] = type(set) == 'table' and set.err or @RENEW_DONE@
  elseif type(held) == 'table' then
    codes[i] = is_wrong_type(held) and @RENEW_STOLEN@ or held.err
  else
    codes[i] = (held == 1 or redis.call('exists', lock) == 0) and @RENEW_GONE@ or @RENEW_STOLEN@
  end
end
return codes
