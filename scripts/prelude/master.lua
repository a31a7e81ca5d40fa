-- master.lua: prelude of the scripts with verdicts that need no write; behind wrong_type.lua.

-- not_master returns what a server says that takes no writes; nil: it takes them. A replica may be behind its master, or
-- empty, so what it finds proves nothing. The write that asks it changes nothing, whatever the key holds, and a
-- server without memory takes it.
local function not_master(lock)
  local written = redis.pcall('hdel', lock, '')
  if type(written) == 'table' and not is_wrong_type(written) then
    return written
  end
end
