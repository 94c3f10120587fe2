#!lua flags=allow-oom
-- Stores a note. Runs when memory is full: retention makes room only where it is noted that the
-- index has all records, and what notes its last pass is not done again and again.
-- KEYS[1]  the note
-- ARGV     its text
-- Returns  nothing
redis.call('SET', KEYS[1], ARGV[1])
