-- Writes marks as commit-page does, and nothing else; also into earlier weeks, oldest week first.
-- KEYS[1]  the account's base
-- ARGV     how many weeks ago, horizon in ms, then each mark: member, bucket choice
-- Returns  how many marks that week holds
-- @include lib/ledger.lua
-- @include lib/marks.lua

this_week = this_week - tonumber(ARGV[1])
local horizon = tonumber(ARGV[2])
local marks = {}
for i = 3, #ARGV, 2 do
  marks[#marks + 1] = { m = ARGV[i], b = tonumber(ARGV[i + 1]) }
end
return write_all(open_weeks(horizon), marks, horizon)
