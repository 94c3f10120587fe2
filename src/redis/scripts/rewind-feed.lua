-- Moves a feed's floor and starts a new walk there. Marks stay: what was delivered is not sent again.
-- KEYS[1]  the account's base
-- ARGV     feed, new floor in ms
-- Returns  the new floor
-- @include lib/ledger.lua

local feed = key('feed', ARGV[1])
redis.call('HSET', feed, 'floor', ARGV[2], 'rewound', now)
redis.call('HDEL', feed, 'walk', 'newest')
redis.call('HINCRBY', feed, 'seq', 1)
return ARGV[2]
