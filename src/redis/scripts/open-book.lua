#!lua flags=allow-oom
-- Makes the book of an account where there is none: its digest key. What is begun here has an index from the start.
-- KEYS[1]  the account's base
-- ARGV     a new digest key
-- Returns  nothing
-- @include lib/ledger.lua

if redis.call('SETNX', key('mark-key'), ARGV[1]) == 1 then
  redis.call('SET', key('indexed'), '1')
end
