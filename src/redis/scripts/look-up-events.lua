-- Tells of each event that a feed shows whether the ledger has it. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: feed, horizon (ms), events [{rid, seen {m, b}}], bad [{m, b}]
-- Returns  one word for each event: taken (it has a fingerprint and a record), unrecorded (a
--          fingerprint without a record that names the feed) or unknown; then one for each bad
--          item: quarantined or unknown
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

local function word_of(event)
  if not has_mark(weeks, event.seen) then
    return 'unknown'
  end
  local record = load_record(event.rid)
  return record and is_shown_by_feed(record) and 'taken' or 'unrecorded'
end

local words = {}
for _, event in ipairs(ask.events) do
  words[#words + 1] = word_of(event)
end
for _, bad in ipairs(ask.bad) do
  words[#words + 1] = has_mark(weeks, bad) and 'quarantined' or 'unknown'
end
return words
