-- Changes what is noted of a condition, unless another replica was first.
-- KEYS[1]  the notices: hash of condition → JSON
-- ARGV     condition; what was noted ('': nothing); what is to be noted ('': nothing any more)
-- Returns  1: changed; 0: something else is noted by now
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
