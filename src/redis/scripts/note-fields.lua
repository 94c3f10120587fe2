#!lua flags=allow-oom
-- Writes fields of a hash even when memory is full: what an upgrade needs before anything can make room.
-- KEYS[1]  the hash
-- ARGV     fields with their values, in pairs
-- Returns  nothing
redis.call('HSET', KEYS[1], unpack(ARGV))
