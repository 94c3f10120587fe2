-- Estimates the bytes of Redis' memory that some records take with all that is kept of them. Changes
-- nothing.
-- KEYS[1]  the account's base
-- ARGV     positions in the index of records, from 0
-- Returns  the bytes of all of them together
-- @include lib/ledger.lua
-- @include lib/weight.lua

local bytes = 0
for _, place in ipairs(ARGV) do
  local rid = redis.call('ZRANGE', key('records'), place, place)[1]
  bytes = bytes + (rid and weigh_record(rid) or 0)
end
return bytes
