-- Reads what the metrics and self-alerts say of an account. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     retention.story ms, the names of feeds
-- Returns  {now, {counter, value, …}, {a feed's fields and values, for each feed asked for},
--          {sink, dead letters, when the first work is due or was (ms; '': none waits), for each sink},
--          1 where the quarantine is not empty}
-- @include lib/ledger.lua

local feeds = {}
for i = 2, #ARGV do
  feeds[i - 1] = redis.call('HGETALL', key('feed', ARGV[i]))
end

local sinks = {}
for _, sink in ipairs(redis.call('SMEMBERS', key('sinks'))) do
  local first = redis.call('ZRANGE', key('due', sink), 0, 0, 'WITHSCORES')
  sinks[#sinks + 1] = sink
  sinks[#sinks + 1] = redis.call('ZCOUNT', key('dead', sink), '(' .. now - tonumber(ARGV[1]), '+inf')
  sinks[#sinks + 1] = first[2] or ''
end

return { now, redis.call('HGETALL', key('counters')), feeds, sinks, redis.call('EXISTS', key('quarantine-ages')) }
