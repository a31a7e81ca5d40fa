-- book.lua: prelude of the script that takes a place for somebody who does not wait yet.

-- book puts id, which is new, behind the others in a queue, for patience milliseconds, and
-- reports whether it did: not if one of them may be Redisson's, which the process would have to
-- listen to; Redisson's places are kept for five minutes (ahead in prelude/stand.lua). The
-- others, who are ours, see to the TTLs of the two keys: each of them asks at least once in two
-- minutes (keep_keys there).
local function book(queue, deadlines, now, id, patience)
  local latest = redis.call('zrevrange', deadlines, '0', '0', 'withscores')[2]
  if latest and tonumber(latest) >= now + 150000 then
    return false
  end
  local kept = string.format('%.0f', now + patience)
  if type(redis.pcall('zadd', deadlines, kept, id)) == 'table' then
    return false
  end
  redis.call('rpush', queue, id)
  return true
end
