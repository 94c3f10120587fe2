#!lua flags=allow-oom
-- Notes that the index of an account has all its records, even when memory is full: only then retention makes room.
-- KEYS[1]  the note
-- ARGV     none
-- Returns  nothing
redis.call('SET', KEYS[1], '1')
