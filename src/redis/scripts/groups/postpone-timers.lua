#!lua flags=allow-oom
-- Sets the timers of some groups to a time; a timer that is gone stays gone.
-- KEYS[1]  the account's base
-- ARGV     the new time in ms, then the timers (c:<group>:<sink>)
-- Returns  nothing
-- @include lib/ledger.lua

for i = 2, #ARGV do
  redis.call('ZADD', key('timers'), 'XX', ARGV[1], ARGV[i])
end
