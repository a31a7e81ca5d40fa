-- busy.lua: answer a TryLock that has asked a holder, which may linger: the lock is in use.
--
-- KEYS[1]  lock: hash, see lock_acquire.lua and lib/rights.lua
-- ARGV[1]  owner: the id of the holder
-- ARGV[2]  inbox: of the process that asks
-- ARGV[3]  message: for it
--
-- Returns n   n clients heard it (in a cluster: on this node)
--         -1  this owner does not hold it any more

if redis.call('hexists', lock, owner) == 0 then
  return @RELEASE_GONE@
end
return redis.call('publish', inbox, message)
