#!lua flags=allow-oom
-- Settles some members of a message whose outcome is known.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: bid, outcome, n (attempts), h? (their notes), rr, retention, max
-- Returns  how many are left
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local sealed = key('sealed', ask.bid)
for _, ref in ipairs(redis.call('ZRANGE', sealed, 0, ask.max - 1)) do
  local place = split_ref(ref)
  local record = load_record(place[2])
  local n = tonumber(place[3])
  local item = record and record.i[n + 1]
  if item then
    item.n = ask.n
    item.h = ask.h
    item.rr = math.max(item.rr or 0, ask.rr or 0)
    end_item(place[2], n, record, item, ask)
  end
  redis.call('ZREM', sealed, ref)
end
return redis.call('ZCARD', sealed)
