-- book.lua: prelude of the script that takes a place for somebody who does not wait yet.

-- book puts id, which is new, behind the others in a queue, for so many seconds, and
-- reports whether it did: not if one of them may be Redisson's, which the process would have to
-- listen to. That is so if the last is, or a time is far: Redisson's places are kept for five minutes
-- by default, and ours longer behind any of them. The others, who are ours, see to the TTLs of the two keys: each of them asks at least once in two
-- minutes (keep_keys in prelude/stand.lua).
local function book(queue, deadlines, time, id, seconds, last)
  if not inbox_of(last) or redis.call('zcount', deadlines, time[1] + 150 .. '000', '+inf') > 0 then
    return false
  end
  if type(redis.pcall('zadd', deadlines, time[1] + seconds .. '000', id)) == 'table' then
    return false
  end
  redis.call('rpush', queue, id)
  return true
end
