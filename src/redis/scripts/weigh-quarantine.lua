-- Estimates the bytes of Redis' memory that the quarantine takes. Changes nothing.
-- KEYS[1]  the account's base
-- Returns  the bytes
-- @include lib/ledger.lua
-- @include lib/weight.lua

local bytes = 0
for _, id in ipairs(redis.call('ZRANGE', key('quarantine-ages'), 0, -1)) do
  bytes = bytes + weigh_entry(id)
end
return bytes
