-- many.lua: form of a script that runs it for many calls. Each call runs by itself, with keys and arguments of its own: if it
-- fails, the others run all the same.
--
-- KEYS[i]   the keys of the first call, then those of the second, and so on
-- ARGV[1]   width: how many keys a call has
-- ARGV[2]   shape: a sign for each argument of a call: = if all calls have the same, - if each has one of its own
-- ARGV[2+i] the arguments that all calls share; then those that the first call has of its own, those of the second, and so on
--
-- Returns   an array with the reply to each call, false if it has failed; and behind them an array with the number and the error of
--           each call that has. Errors between replies are not for all clients: go-redis reads no further than to the first READONLY.

local function one(KEYS, ARGV)
-- script
end

local width, shape, at = tonumber(ARGV[1]), ARGV[2], 3
local keys, args, own, replies, failures = {}, {}, {}, {}, {}
for i = 1, #shape do
  if string.sub(shape, i, i) == '=' then
    args[i], at = ARGV[at], at + 1
  else
    own[#own + 1] = i
  end
end
local n = #own
for call = 1, #KEYS / width do
  local before = (call - 1) * width
  for i = 1, width do
    keys[i] = KEYS[before + i]
  end
  for i = 1, n do
    args[own[i]], at = ARGV[at], at + 1
  end
  local fine, reply = pcall(one, keys, args)
  local failure = not fine and reply or type(reply) == 'table' and reply.err
  if failure then
    failure = tostring(type(failure) == 'table' and failure.err or failure)
    if not fine then
      failure = string.find(failure, 'user_script:', 1, true) and 'ERR ' .. failure or failure .. ' (in user_script: @NAME@)'
    end
    failures[#failures + 1], failures[#failures + 2], reply = call, failure, false
  end
  replies[call] = reply or false -- a nil would end the array
end
replies[#replies + 1] = failures
return replies
