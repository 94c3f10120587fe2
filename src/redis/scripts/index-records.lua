#!lua flags=allow-oom
-- Adds records of an older version to the index, and corrects the scores of those that such a
-- version has changed since. Runs when memory is full: retention drops only what the index has.
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
