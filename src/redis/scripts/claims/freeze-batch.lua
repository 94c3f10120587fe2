#!lua flags=allow-oom
-- Freezes the given members of a sink's waiting batch into one message, claimed by the caller: its
-- members and their order never change.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: sink, destination, owner, lease (ms), refs (in order)
-- Returns  JSON of the claim as in claim-due, in place of its members their `refs`; '' if none of
--          them was waiting any more. Also '' where the owner does not hold what the sink collects:
--          what it has read of them may be old by then
-- @include lib/ledger.lua
-- @include lib/attempts.lua

local ask = cjson.decode(ARGV[1])
if not held_since('c:' .. ask.sink, ask.owner) then
  return ''
end
local found, waiting = {}, {}
local scores = redis.call('ZMSCORE', key('collect', ask.sink), unpack(ask.refs))
for i, ref in ipairs(ask.refs) do
  if scores[i] then
    waiting[#waiting + 1] = ref
    local rid, _, record, item = load_item(ref)
    if item and item.st == 'queued' then
      found[#found + 1] = { ref = ref, rid = rid, record = record, item = item }
    end
  end
end

call_all('ZREM', key('collect', ask.sink), waiting, 1)

-- An empty batch is no longer due; a rest stays claimed.
end_empty_batch(ask.sink)
if #found == 0 then
  return ''
end

local refs = {}
for i, member in ipairs(found) do
  refs[i] = member.ref
end
local bid = redis.sha1hex(table.concat(refs, ' '))
local risks, rank, own = 0, 0, true
for _, member in ipairs(found) do
  local item = member.item
  risks = math.max(risks, item.rr or 0)
  rank = math.max(rank, item.rk)
  own = own and item.own
  move(item, 'batch')
  item.b = bid
  save_record(member.rid, member.record)
end
local batch = { k = ask.sink, d = ask.destination, m = refs, n = 0, st = 'queued', c = now, rr = risks, rk = rank, own = own or nil }
redis.call('SET', key('batch', bid), cjson.encode(batch))
local ref = 'b:' .. bid .. ':' .. ask.sink
claim(ref, ask.owner, ask.lease, now)
local head = head_of('batch', ref, batch, rank)
head.d, head.refs = ask.destination, refs
return cjson.encode(head)
