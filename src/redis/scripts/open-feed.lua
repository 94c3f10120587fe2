-- Reads what a poll starts from; the first one ever fixes the floor below which nothing is read.
-- KEYS[1]  the account's base
-- ARGV     feed, start in ms before now
-- Returns  {now, field, value, field, value, …}
-- @include lib/ledger.lua

local feed = key('feed', ARGV[1])
redis.call('HSETNX', feed, 'floor', now - tonumber(ARGV[2]))
local state = redis.call('HGETALL', feed)
table.insert(state, 1, tostring(now))
return state
