-- wanted.lua: does anybody else wait for a lock? It writes nothing.
--
-- KEYS[1]  queue of waiters; see prelude/queue.lua
-- KEYS[2]  channel of the lock
-- ARGV[1]  command that announces releases: publish or spublish
--
-- Returns how many wait in the queue or listen to the channel; the caller's own
-- waiters are not in the queue while it holds the lock

-- prelude: queue redisson

return redis.call('llen', KEYS[1]) + listeners(ARGV[1], KEYS[2])
