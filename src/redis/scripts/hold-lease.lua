#!lua flags=allow-oom
-- Takes or renews a lease that one holder has at a time; with no time it is given back. Runs when memory is
-- full: what makes room is done under one.
-- KEYS[1]  the lease
-- ARGV     holder, for how long in ms (0: give it back)
-- Returns  1 where the holder has it, or had it; 0 where somebody else does

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
