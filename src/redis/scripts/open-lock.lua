#!lua flags=allow-oom
-- Opens a lock that is ours.
-- KEYS[1]  the lock
-- ARGV[1]  our lock id
-- Returns  nothing
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
