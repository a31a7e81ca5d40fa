-- wanted.lua: does anybody else wait for a lock? It writes nothing.
--
-- KEYS[1]  queue of waiters; see prelude/queue.lua
-- KEYS[2]  channel of the lock
-- ARGV[1]  numsub, or shardnumsub where the channel is a sharded one
--
-- Returns how many wait in the queue or listen to the channel; the caller's own
-- waiters are not in the queue while it holds the lock

local count = redis.pcall('pubsub', ARGV[1], KEYS[2])
return redis.call('llen', KEYS[1]) + (count[2] or 0)
