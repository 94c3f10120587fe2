#!lua flags=allow-oom
-- Counts a guess at a secret under all counters, unless one of them is full. May run when memory is
-- full: the limit holds then, too.
-- KEYS     the counters
-- ARGV[1]  1: count it; 0: only look; -1: give it back
-- ARGV[2]  how long a counter lasts from its first guess, ms
-- ARGV[3+] the most that each counter may hold
-- Returns  ms until the last full counter is void; 0: none is full
local change = tonumber(ARGV[1])
local wait = 0
for at, key in ipairs(KEYS) do
  if change >= 0 and tonumber(redis.call('GET', key) or '0') >= tonumber(ARGV[2 + at]) then
    wait = math.max(wait, redis.call('PTTL', key), 1)
  end
end
if wait > 0 or change == 0 then
  return wait
end
for _, key in ipairs(KEYS) do
  local count = redis.call('INCRBY', key, change)
  if count <= 0 then
    redis.call('DEL', key)
  elseif count == 1 and change == 1 then
    redis.call('PEXPIRE', key, ARGV[2])
  end
end
return 0
