#!lua flags=allow-oom
-- Opens a lock that is ours.
-- KEYS[1]  the lock
-- ARGV[1]  our lock id
-- Returns  1: opened; 0: it was not ours (any more)
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
