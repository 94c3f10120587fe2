-- Reads the state of a feed for a poll. The first call ever fixes the start bound, before which
-- nothing is read.
-- KEYS[1]  the account's base
-- ARGV     feed, start in ms before now
-- Returns  {now (ms), field, value, …}
-- @include lib/ledger.lua

local feed = key('feed', ARGV[1])
if redis.call('HSETNX', feed, 'floor', now - tonumber(ARGV[2])) == 1 then
  redis.call('HSET', feed, 'first_poll', now)
end
local state = redis.call('HGETALL', feed)
table.insert(state, 1, tostring(now))
return state
