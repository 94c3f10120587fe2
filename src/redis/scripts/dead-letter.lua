-- Replays or discards one dead letter.
-- KEYS[1]  the account's base
-- ARGV     ref, verb (replay | discard), batch wait in ms or '', retention of the record (ms),
--          retention of the payload (ms)
-- Returns  done | collect (it waits in its sink's batch) | not_dead | no_payload (retention has
--          dropped what would be sent)
-- @include lib/ledger.lua

local ref, verb = ARGV[1], ARGV[2]
local place = split_ref(ref)
local rid, n = place[2], tonumber(place[3])
local record = load_record(rid)
local item = record and record.i[n + 1]
if not item or item.st ~= 'dead' then
  redis.call('ZREM', key('dead', place[4]), ref)
  return 'not_dead'
end
if verb == 'discard' then
  item.st = 'discarded'
elseif redis.call('EXISTS', key('pay', rid)) == 0 then
  return 'no_payload'
else
  bump('s|' .. item.k .. '|replayed', 1)
  item.x = nil
  item.b = nil
  item.y = nil
  item.c = now
  item.rp = (item.rp or 0) + 1
  enqueue(rid, n, item, tonumber(ARGV[3]))
end
redis.call('ZREM', key('dead', item.k), ref)
save_record(rid, record)
rest(rid, record, { history = tonumber(ARGV[4]), payload = tonumber(ARGV[5]) })
return (verb == 'replay' and ARGV[3] ~= '') and 'collect' or 'done'
