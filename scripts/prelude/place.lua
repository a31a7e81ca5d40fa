-- place.lua: prelude of the scripts whose callers may wait.
--
-- How a caller waits is "<place> <inbox> <patience>":
--
--   place     none: it does not wait; new: it wants a place, or keeps the one that it has; same: it had a place, and
--             returns to the front if that was taken away meanwhile; ask: it does not wait but for the answer of a holder that
--             may linger, see prelude/want.lua, and has a place meanwhile
--   inbox     heard, or deaf: its process hears none, and has to find its grant by asking
--   patience  for how many milliseconds the place is kept
--
-- In an acquire the offer for a grant to another waiter is behind it, see prelude/offer.lua.

-- place_of takes it apart. It returns the place; until when that is to be kept, as the zset says it; and what is behind.
local function place_of(wait, now)
  local place, inbox, patience, offer = string.match(wait, '^(%l+) (%l+) (%d+) ?(.*)$')
  return place, now + patience + (inbox == 'deaf' and @DEAF@ or 0), offer
end
