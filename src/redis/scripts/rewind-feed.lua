-- Moves a feed's start bound. The tail goes on near the newest event, and a rescan reads from the new bound
-- on. Marks stay: what was delivered is not sent again.
-- KEYS[1]  the account's base
-- ARGV     feed, new floor in ms
-- Returns  nothing
-- @include lib/ledger.lua

local feed = key('feed', ARGV[1])
local walk = redis.call('HGET', feed, 'walk')
local begun = walk and cjson.decode(walk).startedAtMs or 0 -- the clock may have been ahead then
redis.call('HSET', feed, 'floor', ARGV[2], 'rewound', math.max(now, begun + 1))
redis.call('HINCRBY', feed, 'seq', 1)
