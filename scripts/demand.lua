-- demand.lua: does another process wait for a lock? It writes nothing. The caller can send itself a message with it, an echo: what
-- comes back shows that messages arrive.
--
-- KEYS[1]  queue: list of waiters, see lib/queue.lua
-- ARGV[1]  publish: command that announces releases: publish or spublish
-- ARGV[2]  channel: of the lock
-- ARGV[3]  own: the channel of the echo: the caller's inbox, or that of the lock; empty if there is none
-- ARGV[4]  message: that echo
--
-- Returns {waiting, listeners, heard}
--          how many stand in the queue, where the caller's own waiters are not while it holds the lock;
--          and how many clients listen to the channel, of which the caller may be one (in a cluster: on
--          this node); and how many clients heard the echo, likewise; -1: it was not sent

-- include: redisson

local heard = own ~= '' and redis.pcall(own == channel and publish or 'publish', own, message)
return {redis.call('llen', queue), listeners(publish, channel), type(heard) == 'number' and heard or -1}
