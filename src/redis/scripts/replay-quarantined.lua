-- Forgets one malformed item, entry and marks, so that it is new to the feeds that show it again.
-- KEYS[1]  the account's base
-- ARGV     the entry's id, dedupe horizon ms
-- Returns  done | gone | no_mark (set aside before marks were kept with the entry: it stays)
-- @include lib/ledger.lua
-- @include lib/marks.lua
-- @include lib/quarantine.lua

local id = ARGV[1]
local text = redis.call('HGET', key('quarantine'), id)
if not text then
  return 'gone'
end
local marks = cjson.decode(text).marks
if not marks then
  return 'no_mark'
end
local weeks = open_weeks(tonumber(ARGV[2]), true)
for _, mark in pairs(marks) do
  erase_mark(weeks, mark)
end
close_entry(id)
return 'done'
