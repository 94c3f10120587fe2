-- Tells of each event that a feed shows whether the ledger has it. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: feed, horizon (ms), events [{rid, seen {m, b}}]
-- Returns  one word for each event: taken (it has a fingerprint and a record), unrecorded (a
--          fingerprint without a record that names the feed) or unknown
-- @include lib/ledger.lua
-- @include lib/marks.lua

local ask = cjson.decode(ARGV[1])
local weeks = open_weeks(ask.horizon, true)

local function is_shown_by_feed(record)
  for _, sight in ipairs(record.f) do
    if sight.f == ask.feed then
      return true
    end
  end
  return false
end

local words = {}
for i, event in ipairs(ask.events) do
  local record = has_mark(weeks, event.seen) and (load_record(event.rid) or { f = {} })
  words[i] = not record and 'unknown' or is_shown_by_feed(record) and 'taken' or 'unrecorded'
end
return words
