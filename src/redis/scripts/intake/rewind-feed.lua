-- Moves a feed's start bound. The tail goes on near the newest event and a rescan reads from the new bound on. A feed
-- without such rescans is read from the bound on by its tail. Fingerprints stay, so what was delivered is not sent
-- again.
-- KEYS[1]  the account's base
-- ARGV     feed, new start bound in ms
-- Returns  nothing
-- @include lib/ledger.lua

local feed = key('feed', ARGV[1])
local scan = redis.call('HGET', feed, 'walk')
local begun = scan and cjson.decode(scan).startedAtMs or 0 -- by a clock that may have been ahead
redis.call('HSET', feed, 'floor', ARGV[2], 'rewound', math.max(now, begun + 1))
redis.call('HINCRBY', feed, 'seq', 1)
