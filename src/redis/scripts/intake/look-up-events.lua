-- Tells of each event that a feed shows whether the ledger has it. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: feed, horizon (ms), events [{rid, seen {m, b}}]
-- Returns  one word for each event: taken (it has a fingerprint and a record), unrecorded (a
--          fingerprint without a record that names the feed) or unknown
-- @include lib/ledger.lua
-- @include lib/marks.lua

local ask = cjson.decode(ARGV[1])
local weeks = open_weeks(ask.horizon, true)

local function is_shown_by_feed(rid)
  for _, sight in ipairs(load_record(rid) and shown_of(rid).f or {}) do
    if sight.f == ask.feed then
      return true
    end
  end
  return false
end

local words = {}
for i, event in ipairs(ask.events) do
  words[i] = not has_mark(weeks, event.seen) and 'unknown' or is_shown_by_feed(event.rid) and 'taken' or 'unrecorded'
end
return words
