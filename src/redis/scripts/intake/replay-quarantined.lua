-- Removes an entry of the quarantine with its item's fingerprints, so that the item is new to every
-- feed that shows it again.
-- KEYS[1]  the account's base
-- ARGV     the entry's id, dedupe horizon in ms
-- Returns  done | gone
-- @include lib/ledger.lua
-- @include lib/marks.lua
-- @include lib/quarantine.lua

local id = ARGV[1]
local text = redis.call('HGET', key('quarantine'), id)
if not text then
  return 'gone'
end
local weeks = open_weeks(tonumber(ARGV[2]), true)
for _, mark in pairs(cjson.decode(text).marks) do
  erase_mark(weeks, mark)
end
close_entry(id)
return 'done'
