#!lua flags=allow-oom
-- Releases a lock if the caller holds it.
-- KEYS[1]  the lock
-- ARGV[1]  the caller's lock id
-- Returns  nothing
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
