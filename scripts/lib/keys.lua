-- keys.lua: library of what a key holds, how one is written (it gets its TTL at once, or what was written is taken back), and what a
-- script answers when a key or a server is not as it should be.

-- include: queue

-- expire gives a key beside the lock its TTL. If that is refused, as by an ACL, it deletes the key and returns what Redis said.
local function expire(key, ttl)
  local set = redis.pcall('pexpire', key, ttl)
  if set ~= 1 then
    redis.call('del', key)
    return set
  end
end

-- bury leaves a tombstone for id, which refuses late copies of its acquire; nil or '0' leaves none. It comes last: of writes that need
-- memory, Redis refuses none behind others. Where it refuses this one, it refuses a late acquire as well.
local function bury(tombstones, id, duration)
  local now = duration and duration ~= '0' and server_time()
  if now and redis.pcall('zadd', tombstones, now + duration, id) == 1 then
    expire(tombstones, duration)
    redis.pcall('zremrangebyscore', tombstones, '-inf', now)
  end
end

-- take_back removes a holder, and the lock if it was the only one.
local function take_back(lock, id)
  redis.call('hdel', lock, id)
  if redis.call('hlen', lock) == 1 then -- mode
    redis.call('del', lock)
  end
end

-- put gives a mutex or fair lock that is free to id. It returns nil, or the error that kept it from that.
local function put(lock, id, ttl)
  redis.call('hset', lock, id, '1')
  local set = redis.pcall('pexpire', lock, ttl)
  if set ~= 1 then
    take_back(lock, id)
    return no_ttl(set)
  end
end

-- kind_of returns what a key holds, free, mutex, read, write or other, and the fields and values of a lock: about most of them, or
-- all. A field is an owner's only if it is an owner id and its value a hold count: else the hash is an application's, and not
-- Holdfast's to delete. An owner id is <UUID>:<number>, with hf- before it or not; a writer or a transaction puts :<text> behind it.
local function kind_of(key, most)
  local kind = redis.call('type', key).ok
  if kind ~= 'hash' then
    return kind == 'none' and 'free' or 'other', {}
  end
  local mode = redis.call('hget', key, 'mode')
  local size = redis.call('hlen', key) -- an application's may have millions of fields
  if mode and mode ~= 'read' and mode ~= 'write' or not mode and size > 1
    or mode and size == 1 and redis.call('pttl', key) == -1 then -- with a TTL it is what a denied release has left
    return 'other', {}
  end
  local fields = most and size > most and redis.call('hscan', key, '0', 'count', most)[2] or redis.call('hgetall', key)
  local four = '%x%x%x%x'
  local owner = '^' .. four .. four .. '%-' .. four .. '%-' .. four .. '%-' .. four .. '%-' .. four .. four .. four .. ':%-?%d+:'
  for i = 1, #fields, 2 do
    local field, holds = fields[i], fields[i + 1]
    local id = string.sub(field, 1, 3) == 'hf-' and string.sub(field, 4) or field
    if field ~= 'mode' and not (string.find(id .. ':', owner) and string.find(holds, '^[1-9]%d*$')) then
      return 'other', {}
    end
  end
  return mode or 'mutex', fields
end

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
