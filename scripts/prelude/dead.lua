-- dead.lua: prelude of the scripts that grant a lock to those who wait.

-- known_dead reports whether the process of id, whose inbox has no listeners, is taken for dead: it
-- had an inbox when it last asked, which the time of its place says, and the server knows of all
-- listeners. A node of a cluster does not. One that has only lost its connection is passed over, and
-- is in front again when it asks.
local function known_dead(deadlines, id)
  return (redis.call('zscore', deadlines, id) or 0) % 1 == 0
    and type(redis.pcall('cluster', 'info')) == 'table' -- an error: it is none
end
