-- Writes marks as commit-page does, and nothing else; also into earlier weeks, oldest week first.
-- KEYS[1]  the account's base
-- ARGV     how many weeks ago, horizon in ms, then each mark: member, bucket choice
-- Returns  how many marks that week holds
-- @include lib/ledger.lua
-- @include lib/marks.lua

this_week = this_week - tonumber(ARGV[1])
local horizon = tonumber(ARGV[2])
local weeks = open_weeks(horizon)
for i = 3, #ARGV, 2 do
  write_at_once(weeks, { m = ARGV[i], b = tonumber(ARGV[i + 1]) }, horizon)
end
return held_in(open_this_week(weeks))
