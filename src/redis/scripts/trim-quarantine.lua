#!lua flags=allow-oom
-- Closes entries of the quarantine that were set aside before a time. Runs when memory is full: it makes room.
-- KEYS[1]  the account's base
-- ARGV     set aside before (ms)
-- Returns  how many; 200 at most, so that the caller asks again
-- @include lib/ledger.lua
-- @include lib/quarantine.lua

local ids = redis.call('ZRANGEBYSCORE', key('quarantine-ages'), '-inf', '(' .. ARGV[1], 'LIMIT', 0, 200)
for _, id in ipairs(ids) do
  close_entry(id)
end
return #ids
