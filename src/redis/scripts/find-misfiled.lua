-- Finds entries of the index that have no record, or a score that is not the record's. Changes
-- nothing. The entry of a record that expired stays until the next pass of retention and is no
-- finding.
-- KEYS[1]  the account's base
-- ARGV     retention.history (ms), ids of records
-- Returns  {id, gone | other_state, …}
-- @include lib/ledger.lua
-- @include lib/kept-for.lua

local ended_before = now - kept_for(tonumber(ARGV[1]))
local found = {}
for i = 2, #ARGV do
  local rid = ARGV[i]
  local at = tonumber(redis.call('ZSCORE', key('records'), rid) or nil)
  local record = at and load_record(rid)
  local is_ended = at and at > 0 and at <= ended_before
  local why = at and (record and (place_of(record) ~= at and 'other_state') or (not record and not is_ended and 'gone'))
  if why then
    found[#found + 1] = rid
    found[#found + 1] = why
  end
end
return found
