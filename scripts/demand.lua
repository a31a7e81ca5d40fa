-- demand.lua: does another process wait for a lock? It writes nothing.
--
-- KEYS[1]  queue: list of waiters, see prelude/queue.lua
-- ARGV[1]  publish: command that announces releases: publish or spublish
-- ARGV[2]  channel: of the lock
--
-- Returns {waiting, listeners}
--          how many stand in the queue, where the caller's own waiters are not while it holds the lock;
--          and how many clients listen to the channel, of which the caller may be one (in a cluster: on
--          this node)

-- prelude: queue redisson

return {redis.call('llen', queue), listeners(publish, channel)}
