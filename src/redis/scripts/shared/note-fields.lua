#!lua flags=allow-oom
-- Writes fields of a hash. Runs when memory is full: a daemon needs it before retention can make
-- room.
-- KEYS[1]  the hash
-- ARGV     fields with their values, in pairs
-- Returns  nothing
redis.call('HSET', KEYS[1], unpack(ARGV))
