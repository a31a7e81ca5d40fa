-- renew.lua: keep holds alive. It extends and never shortens, and it neither creates a key nor adds an owner. Each key stands alone:
-- what is wrong with one changes nothing for the others.
--
-- KEYS[i]    lock: the i-th: hash, owner id -> hold count
-- ARGV[1]    lease: TTL, milliseconds
-- ARGV[2]    prefix: what the owner ids begin with; sent once, they are most of the bytes
-- ARGV[2+i]  tail: what the i-th owner id ends with
--
-- Returns an array with, for each key:
--          1     renewed
--          0     the lock is gone
--          2     another owner holds it, or the key is something else now
--          text  what Redis said instead of renewing it

-- include: keys

local ttl, codes = tonumber(lease), {}
for i = 1, #KEYS do
  local refusal = i == 1 and not_master(lock)
  if refusal and string.find(refusal.err, 'READONLY', 1, true) then -- an ACL that forbids HDEL does not end a lease
    return refusal
  end
  local held = redis.pcall('hexists', lock, prefix .. tail)
  if held == 1 then
    local set = redis.call('pttl', lock) >= ttl or redis.pcall('pexpire', lock, ttl)
    codes[i] = type(set) == 'table' and set.err or @RENEW_DONE@
  elseif held ~= 0 then
    codes[i] = is_wrong_type(held) and @RENEW_STOLEN@ or held.err
  else
    codes[i] = redis.call('exists', lock) == 0 and @RENEW_GONE@ or @RENEW_STOLEN@
  end
end
return codes
