package sim

// The scripts of Redisson's locks as they change what Redis has, in our own words: re-entry, cached answers of an unlock and
// non-reentrant locks are left out. Each acquire returns -3, or for how long another owner has the lock, in milliseconds.

func (l *rlock) queue() string { return "redisson_lock_queue:{" + l.name + "}" }
func (l *rlock) times() string { return "redisson_lock_timeout:{" + l.name + "}" }

// right is the key with which a reader's right ends.
func (l *rlock) right() string { return "{" + l.name + "}:" + l.id + ":rwlock_timeout:1" }

// shared is the channel of a lock, channel that which the owner listens to.
func (l *rlock) shared() string {
	if l.kind == RW {
		return "redisson_rwlock:{" + l.name + "}"
	}
	return "redisson_lock__channel:{" + l.name + "}"
}

func (l *rlock) channel() string {
	if l.kind == Fair {
		return l.shared() + ":" + l.id
	}
	return l.shared()
}

const (
	rlockAcquire = `-- redisson rlock_acquire
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return -3
end
return redis.call('pttl', KEYS[1])`

	rlockRelease = `-- redisson rlock_unlock
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1`

	// evictLate is what each script of a fair lock begins with: the first in the queue go whose time is over.
	evictLate = `local function evict(queue, times, now)
  while true do
    local first = redis.call('lindex', queue, 0)
    local time = first and redis.call('zscore', times, first)
    if not time or tonumber(time) > tonumber(now) then return end
    redis.call('zrem', times, first)
    redis.call('lpop', queue)
  end
end
`

	rfairAcquire = `-- redisson rfair_acquire
` + evictLate + `
local lock, queue, times, lease, id, patience, now = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
evict(queue, times, now)
local first = redis.call('lindex', queue, 0)
if redis.call('exists', lock) == 0 and (not first or first == id) then
  redis.call('lpop', queue)
  redis.call('zrem', times, id)
  for _, other in ipairs(redis.call('zrange', times, 0, -1)) do
    redis.call('zincrby', times, -tonumber(patience), other)
  end
  redis.call('hset', lock, id, 1)
  redis.call('pexpire', lock, lease)
  return -3
end
if redis.call('hexists', lock, id) == 1 then
  redis.call('pexpire', lock, lease)
  return -3
end
local left = redis.call('pttl', lock)
if redis.call('zscore', times, id) then return math.max(left, 0) end
local last = redis.call('lindex', queue, -1)
local time = last and last ~= id and redis.call('zscore', times, last)
local base = time and tonumber(time) - tonumber(now) or left
if redis.call('zadd', times, base + patience + now, id) == 1 then redis.call('rpush', queue, id) end
return math.max(math.floor(base), 0)`

	rfairFailed = `-- redisson rfair_failed
local queue, times, id, patience = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local behind = false
for _, other in ipairs(redis.call('lrange', queue, 0, -1)) do
  if behind then redis.call('zincrby', times, -tonumber(patience), other) end
  behind = behind or other == id
end
redis.call('zrem', times, id)
return redis.call('lrem', queue, 0, id)`

	rfairRelease = `-- redisson rfair_unlock
` + evictLate + `
local lock, queue, times, channel, id, now = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
evict(queue, times, now)
if redis.call('exists', lock) == 1 and redis.call('hexists', lock, id) == 0 then return 0 end
redis.call('del', lock)
local first = redis.call('lindex', queue, 0)
if first then redis.call('publish', channel .. ':' .. first, '0') end
return 1`

	rreadAcquire = `-- redisson rread_acquire
local mode = redis.call('hget', KEYS[1], 'mode')
if mode and mode ~= 'read' then return redis.call('pttl', KEYS[1]) end
redis.call('hset', KEYS[1], 'mode', 'read', ARGV[2], 1)
redis.call('set', KEYS[2], 1, 'px', ARGV[1])
redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), ARGV[1]))
return -3`

	rreadRelease = `-- redisson rread_unlock
local lock, channel, right, id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
if redis.call('hdel', lock, id) == 0 then return 0 end
redis.call('del', right)
local longest = -3
for _, other in ipairs(redis.call('hkeys', lock)) do
  longest = math.max(longest, redis.call('pttl', '{' .. lock .. '}:' .. other .. ':rwlock_timeout:1'))
end
if longest > 0 then
  redis.call('pexpire', lock, longest)
  return 0
end
redis.call('del', lock)
redis.call('publish', channel, '0')
return 1`

	rwriteAcquire = `-- redisson rwrite_acquire
local mode = redis.call('hget', KEYS[1], 'mode')
if mode and redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return redis.call('pttl', KEYS[1]) end
redis.call('hset', KEYS[1], 'mode', 'write', ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return -3`

	rwriteRelease = `-- redisson rwrite_unlock
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '1')
return 1`
)
