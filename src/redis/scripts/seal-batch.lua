#!lua flags=allow-oom
-- Seals the given members of a sink's collection into one batch: its members and order never change.
-- KEYS[1]  the account's base
-- ARGV[1]  sink, ARGV[2] destination, ARGV[3] batch wait in ms, ARGV[4…] refs in order
-- Returns  the batch's ref, or '' where no given member was waiting any more
-- @include lib/ledger.lua

local sink, destination, batch_wait = ARGV[1], ARGV[2], tonumber(ARGV[3])
local members = {}
for i = 4, #ARGV do
  if redis.call('ZREM', key('collect', sink), ARGV[i]) == 1 then
    local place = split_ref(ARGV[i])
    local record = load_record(place[2])
    local item = record and record.i[tonumber(place[3]) + 1]
    if item and item.st == 'queued' then
      members[#members + 1] = ARGV[i]
    end
  end
end

if redis.call('ZCARD', key('collect', sink)) > 0 then
  wake('c:' .. sink, now + batch_wait)
else
  unwake('c:' .. sink)
end
if #members == 0 then
  return ''
end

local bid = redis.sha1hex(table.concat(members, ' '))
local risks = 0
for _, ref in ipairs(members) do
  local place = split_ref(ref)
  local record = load_record(place[2])
  local item = record.i[tonumber(place[3]) + 1]
  risks = math.max(risks, item.rr or 0)
  move(item, 'batch')
  unwake(ref)
  item.b = bid
  save_record(place[2], record)
end
local batch = { k = sink, d = destination, m = members, n = 0, st = 'queued', c = now, rr = risks }
redis.call('SET', key('batch', bid), cjson.encode(batch))
local ref = 'b:' .. bid .. ':' .. sink
wake(ref, now)
return ref
