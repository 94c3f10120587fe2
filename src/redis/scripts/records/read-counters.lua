-- Reads the counters and the size of the index at the same time. Changes nothing.
-- KEYS[1]  the account's base
-- Returns  {time in ms, how many records the index has, {field, value, …}}
-- @include lib/ledger.lua

return { now, redis.call('ZCARD', key('records')), redis.call('HGETALL', key('counters')) }
