-- Finds entries of the index that have a score that is not the record's, or wait and have no record. Changes
-- nothing. The entry of a settled record that expired stays until the next pass of retention and is no finding.
-- KEYS[1]  the account's base
-- ARGV     ids of records
-- Returns  {id, gone | other_state, …}
-- @include lib/ledger.lua

local found = {}
for _, rid in ipairs(ARGV) do
  local at = tonumber(redis.call('ZSCORE', key('records'), rid) or nil)
  local record = at and load_record(rid)
  local why = at and (record and (place_of(record) ~= at and 'other_state') or (not record and at < 0 and 'gone'))
  if why then
    found[#found + 1] = rid
    found[#found + 1] = why
  end
end
return found
