#!lua flags=allow-oom
-- Creates an account's ledger if there is none, by storing its fingerprint key. A new ledger has a
-- complete index from the start.
-- KEYS[1]  the account's base
-- ARGV     a new fingerprint key (hex)
-- Returns  nothing
-- @include lib/ledger.lua

if redis.call('SETNX', key('mark-key'), ARGV[1]) == 1 then
  redis.call('SET', key('indexed'), '1')
end
