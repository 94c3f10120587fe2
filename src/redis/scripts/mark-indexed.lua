#!lua flags=allow-oom
-- Notes that an account's index has all its records. Runs when memory is full: retention makes room
-- only after that.
-- KEYS[1]  the note
-- ARGV     none
-- Returns  nothing
redis.call('SET', KEYS[1], '1')
