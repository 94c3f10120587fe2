-- Reads what the metrics and self-alerts say of an account. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     retention.history in ms, names of feeds
-- Returns  {now (ms), {counter, value, …}, {{field, value, …} of each feed asked for}, {sink, dead
--          letters, when its longest-waiting work became or becomes due, since when it owes a
--          critical event (ms; '': none), …}, 1 if the quarantine is not empty, else 0}
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
  sinks[#sinks + 1] = redis.call('ZRANGE', key('owed', sink), 0, 0, 'WITHSCORES')[2] or ''
end

return { now, redis.call('HGETALL', key('counters')), feeds, sinks, redis.call('EXISTS', key('quarantine-ages')) }
