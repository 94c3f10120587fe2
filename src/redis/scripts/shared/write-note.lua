#!lua flags=allow-oom
-- Stores a note. Runs when memory is full. Retention makes room only where it is noted that the index has all
-- records. What notes its last pass is not done again and again. An older state that fills Redis is told all the
-- same.
-- KEYS[1]  the note
-- ARGV     its text; for how long, ms (left out: for ever)
-- Returns  nothing
redis.call('SET', KEYS[1], ARGV[1])
if ARGV[2] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
