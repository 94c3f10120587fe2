-- Changes the self-alert state of a condition, unless another replica changed it first.
-- KEYS[1]  hash of condition → JSON
-- ARGV     condition, its state as read ('': none), the new state ('': none)
-- Returns  1: changed; 0: the stored state is another one
local noted = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if noted ~= ARGV[2] then
  return 0
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end
return 1
