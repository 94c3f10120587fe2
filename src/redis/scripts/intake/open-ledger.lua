#!lua flags=allow-oom
-- Creates an account's ledger if there is none, by storing its fingerprint key.
-- KEYS[1]  the account's base
-- ARGV     a new fingerprint key (hex)
-- Returns  nothing
-- @include lib/ledger.lua

redis.call('SETNX', key('mark-key'), ARGV[1])
