#!lua flags=allow-oom
-- Takes, renews or releases a lease that one holder has at a time. Runs when memory is full:
-- retention, which makes room, needs a lease.
-- KEYS[1]  the lease
-- ARGV     holder, for how long in ms (0: release it)
-- Returns  1 if the holder has it, or has released it; 0 if somebody else has it

local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then
  return 0
end
if tonumber(ARGV[2]) == 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1
