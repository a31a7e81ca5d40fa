-- demand.lua: does another process wait for a lock? It writes nothing. The caller can send itself a message with it, an echo: what
-- comes back shows that messages arrive.
--
-- KEYS[1]  queue: list of waiters, see lib/queue.lua
-- ARGV[1]  publish: command that announces releases: publish or spublish
-- ARGV[2]  channel: of the lock
-- ARGV[3]  own: the channel of the echo: the caller's inbox, or that of the lock; empty if there is none
-- ARGV[4]  message: that echo
-- ARGV[5]  process: what the owner ids of the caller's process begin with
--
-- Returns {waiting, listeners, heard}
--          how many of other processes are among the first four in the queue. The caller's own process knows of its own waiters, and
--          a place whose waiter has left can still be there;
--          and how many clients listen to the channel, of which the caller may be one (in a cluster: on
--          this node); and how many clients heard the echo, likewise; -1: it was not sent

-- include: redisson

local heard = own ~= '' and redis.pcall(own == channel and publish or 'publish', own, message)

local waiting = 0
for _, id in ipairs(redis.call('lrange', queue, 0, 3)) do
  if string.sub(id, 1, #process) ~= process then
    waiting = waiting + 1
  end
end
return {waiting, listeners(publish, channel), type(heard) == 'number' and heard or -1}
