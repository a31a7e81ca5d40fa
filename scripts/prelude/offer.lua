-- offer.lua: prelude of the scripts that may grant a lock to a waiter. That of mutexes and fair locks has a copy in
-- prelude/pass_on.lua.
--
-- An offer is "<claim> <turn> <counted>" in whole numbers:
--
--   claim    the TTL of the grant, milliseconds
--   turn     which grant in a row it would be
--   counted  1 if PUBSUB NUMSUB counts all listeners; 0 on a cluster, a node of which counts its own
--
-- In an acquire the command that tells Redisson's waiters is behind it: publish or spublish.

-- offer_of takes an offer apart. All parts are texts.
local function offer_of(offer)
  return string.match(offer, '^(%d+) (%d+) (%d) ?(%l*)$')
end
