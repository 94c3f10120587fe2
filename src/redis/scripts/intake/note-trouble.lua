#!lua flags=allow-oom
-- Notes that a feed could not be read, with Redis' clock.
-- KEYS[1]  the account's base
-- ARGV     feed, field, reason, answer, ms until the next try ('': not known)
-- Returns  nothing
-- @include lib/ledger.lua
-- @include lib/trouble.lua

note_trouble(key('feed', ARGV[1]), ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]))
