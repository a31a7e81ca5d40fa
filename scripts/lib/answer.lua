-- answer.lua: library of what a script answers when something is not as it should be.

-- is_wrong_type reports whether a reply is Redis's error about a key of another type.
local function is_wrong_type(reply)
  return type(reply) == 'table' and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end

-- wrong returns {-1, key, what it holds} for a key that is not what it should be; or why a command on it failed, if for another reason.
local function wrong(key, failure)
  if type(failure) == 'table' and not is_wrong_type(failure) then
    return failure
  end
  local holds = redis.pcall('type', key).ok
  if holds == 'hash' then
    local mode = redis.pcall('hget', key, 'mode')
    if mode == 'read' or mode == 'write' then
      holds = 'read-write lock'
    elseif redis.pcall('hlen', key) == 1 and string.find(redis.pcall('hkeys', key)[1] or '', '%x%-%x+%-%x+%-%x+:%-?%d+:?[%w%%%._%-]*$') then
      holds = 'mutex or fair lock'
    end
  end
  return {@ACQUIRE_KIND@, key, 'a ' .. (holds or 'value of another type')}
end

-- not_master returns what a server says that takes no writes: what a replica finds proves nothing. nil: it takes them. The write that
-- asks it, a removal, changes nothing, whatever the key holds, and a server without memory takes it.
local function not_master(lock, removal)
  local written = redis.pcall(removal or 'hdel', lock, '')
  if type(written) == 'table' and not is_wrong_type(written) then
    return written
  end
end

-- no_ttl returns the reply where a lock's TTL was refused, as by an ACL.
local function no_ttl(refusal)
  return redis.error_reply('HOLDFAST cannot set a TTL: ' .. tostring(refusal.err))
end
