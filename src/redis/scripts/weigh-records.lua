-- Weighs records with their payloads, in bytes that Redis needs. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     places in the index of records, counted from its beginning
-- Returns  the bytes of all of them together
-- @include lib/ledger.lua
-- @include lib/weight.lua

local bytes = 0
for _, place in ipairs(ARGV) do
  local rid = redis.call('ZRANGE', key('records'), place, place)[1]
  bytes = bytes + (rid and weigh_record(rid) or 0)
end
return bytes
