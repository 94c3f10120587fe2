#!lua flags=allow-oom
-- Puts records of an older version into the index, and those that such a version still moved where they belong. Runs
-- when memory is full: what the index does not have cannot make room.
-- KEYS[1]  the account's base
-- ARGV     ids of records
-- Returns  nothing
-- @include lib/ledger.lua

local added = 0
for _, rid in ipairs(ARGV) do
  local record = load_record(rid)
  added = added + (record and redis.call('ZADD', key('records'), place_of(record), rid) or 0)
end
bump('records', added)
