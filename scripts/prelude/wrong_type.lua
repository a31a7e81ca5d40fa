-- wrong_type.lua: prelude of the scripts that look whether a key holds something else than it should.

-- is_wrong_type reports whether a reply is Redis's error about a key of another type.
local function is_wrong_type(reply)
  return type(reply) == 'table' and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end
