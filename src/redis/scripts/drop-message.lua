#!lua flags=allow-oom
-- Deletes a frozen message once all its members are settled.
-- KEYS[1]  the account's base
-- ARGV     its ref
-- Returns  nothing
-- @include lib/ledger.lua

unwake(ARGV[1])
redis.call('DEL', key('batch', split_ref(ARGV[1])[2]))
