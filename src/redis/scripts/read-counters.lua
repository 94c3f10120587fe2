-- Reads the counters, and the time at which they stood so. Changes nothing.
-- KEYS[1]  the account's base
-- Returns  {time in ms, field, value, …}
-- @include lib/ledger.lua

local answer = redis.call('HGETALL', key('counters'))
table.insert(answer, 1, now)
return answer
