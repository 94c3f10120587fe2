#!lua flags=allow-oom
-- Makes items dead letters, reason `overflow`, while too many wait for their sink. They can be
-- replayed.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: members [ref], sink (theirs), keep (so many stay pending, counted anew at each
--          call), retention {history, payload} (ms)
-- Returns  how many became dead letters
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local pending = 0
for _, state in ipairs({ 'queued', 'held', 'group', 'digest', 'batch', 'sending', 'retrying' }) do
  pending = pending + tonumber(redis.call('HGET', key('counters'), 's|' .. ask.sink .. '|pending|' .. state) or '0')
end
local waiting = { queued = true, held = true, group = true, digest = true, retrying = true }
local dropped = 0
for _, ref in ipairs(ask.members) do
  local place = split_ref(ref)
  local rid, n = place[2], tonumber(place[3])
  local record = load_record(rid)
  local item = record and record.i[n + 1]
  if item and waiting[item.st] and pending - dropped > ask.keep then
    item.at = nil
    remember(item, { n = item.n, at = now, o = 'dead', r = 'overflow' })
    end_item(rid, n, record, item, { outcome = 'dead', retention = ask.retention })
    dropped = dropped + 1
  end
end
return dropped
