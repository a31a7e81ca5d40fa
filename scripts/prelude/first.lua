-- first.lua: prelude of the scripts that look for the next waiter in a queue; behind step_out.lua.

-- first returns the next waiter and until when that place is kept; after removing those in
-- front whose time is over, @DEAD@ at most or as many as the caller says, and how many it has removed. If the next one's time is over
-- as well, there are more of them: the next request goes on. It calls evicted, if there is one, with each that it
-- removes. If one of the two keys is none of its kind, it returns nil, what Redis said, and that key.
local function first(queue, deadlines, now, evicted, most)
  local gone, id, kept = {}, nil, nil
  local places = {redis.pcall('lindex', queue, '0')}
  repeat
    id, kept = places[#gone + 1], nil
    if type(id) == 'table' then
      return nil, id, queue
    elseif not id then
      break
    end
    kept = redis.pcall('zscore', deadlines, id)
    if type(kept) == 'table' then
      return nil, kept, deadlines
    end
    kept = id == '' and 0 or tonumber(kept or nil) -- '': see leave.lua
    if not kept then -- Redisson would wait for it forever
      local left = redis.call('pttl', deadlines) -- before the write: see put in rw.lua
      kept = now + @REDISSON_PLACE@
      redis.call('zadd', deadlines, kept, id)
      if left < 0 then -- it may be new
        redis.pcall('pexpire', deadlines, '@QUEUE_TTL@')
      end
    end
    if kept > now or #gone == (most or @DEAD@) then
      break
    end
    gone[#gone + 1] = id
    if #gone == 1 then
      places = redis.call('lrange', queue, '0', most or @DEAD@)
    end
  until false
  if #gone > 0 and not id then
    redis.call('del', queue, deadlines)
  elseif #gone > 0 then
    for _ = 1, #gone do
      redis.call('lpop', queue)
    end
    redis.call('zrem', deadlines, unpack(gone))
  end
  for _, other in ipairs(evicted and gone or {}) do
    evicted(other)
  end
  if id then
    return id, kept, #gone
  end
end
