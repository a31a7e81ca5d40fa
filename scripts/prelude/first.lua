-- first.lua: prelude of the scripts that look who is next in a queue; behind step_out.lua.

-- first returns who is next and until when that place is kept; after removing those in
-- front whose time is over. It calls evicted, if there is one, with each of them. If one of the two keys is
-- none of its kind, it returns nil, what Redis said, and that key.
local function first(queue, deadlines, now, evicted)
  while true do
    local id = redis.pcall('lindex', queue, '0')
    if not id then
      return nil
    elseif type(id) == 'table' then
      return nil, id, queue
    end
    local kept = redis.pcall('zscore', deadlines, id)
    if type(kept) == 'table' then
      return nil, kept, deadlines
    end
    kept = tonumber(kept or nil)
    if not kept then -- Redisson would wait for it for ever
      local left = redis.call('pttl', deadlines) -- before the write: see put in rw.lua
      kept = now + 5000
      redis.call('zadd', deadlines, kept, id)
      if left < 0 then -- it may be new
        redis.pcall('pexpire', deadlines, '86400000')
      end
    end
    if kept > now then
      return id, kept
    end
    step_out(queue, deadlines, id, redis.call('llen', queue) > 1)
    if evicted then
      evicted(id)
    end
  end
end
