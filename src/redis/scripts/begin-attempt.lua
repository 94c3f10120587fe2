#!lua flags=allow-oom
-- Opens an attempt before a send: state `sending`, next number, and whether it may be a repeat. Runs
-- when memory is full: what cannot be sent never makes room.
-- KEYS[1]  the account's base
-- ARGV     ref (i:rid:n:sink or b:bid:sink), token of this attempt, lease in ms
-- Returns  {JSON {status: send | final | missing | settling | unsealing, attempt, repeat, tries, created, members}, payload, …};
--          a summary's members are read apart: {kind, about, d, books} stand in their place
-- @include lib/ledger.lua

local ref, token, lease = ARGV[1], ARGV[2], tonumber(ARGV[3])
local parts = split_ref(ref)

-- The same token again is the same attempt, executed twice because the reply was lost.
local function open(holder)
  if holder.st == 'sending' and holder.tok == token then
    return (holder.rr or 0) > 0
  end
  local may_repeat = holder.st == 'sending' or (holder.rr or 0) > 0
  if holder.st == 'sending' then
    holder.rr = (holder.rr or 0) + 1
    remember(holder, { n = holder.n, at = holder.at, o = 'answer lost', r = 'interrupted' })
  end
  holder.n = holder.n + 1
  holder.tok = token
  holder.at = now
  return may_repeat
end

local function describe(rid, n, record, item)
  local sight = record.f[item.g]
  return { rid = rid, n = n, u = record.u, sv = item.sv, d = item.d, q = item.q, f = sight.f, l = sight.l, at = sight.at, ty = record.ty,
    rf = item.rf, cl = record.cl }
end

local function answer(holder, may_repeat, members, payloads)
  local head = { status = 'send', attempt = holder.n, ['repeat'] = may_repeat, tries = holder.x or 0, created = holder.c, members = members }
  table.insert(payloads, 1, cjson.encode(head))
  return payloads
end

if parts[1] == 'i' then
  local rid, n = parts[2], tonumber(parts[3])
  local record = load_record(rid)
  local item = record and record.i[n + 1]
  if not item then
    unwake(ref)
    return { cjson.encode({ status = 'missing' }) }
  end
  if final[item.st] or item.st == 'batch' or item.why == 'orphaned' or item.y then
    unwake(ref)
    return { cjson.encode({ status = 'final', state = item.st }) }
  end
  local may_repeat = open(item)
  move(item, 'sending')
  item.why = nil
  wake(ref, now + lease)
  save_record(rid, record)
  return answer(item, may_repeat, { describe(rid, n, record, item) }, { redis.call('GET', key('pay', rid)) or '' })
end

local text = redis.call('GET', key('batch', parts[2]))
if not text then
  unwake(ref)
  return { cjson.encode({ status = 'missing' }) }
end
local batch = cjson.decode(text)
if batch.o then
  return { cjson.encode({ status = 'settling', batch = batch }) } -- its answer is known, some members are not settled yet
end
if batch.un then
  return { cjson.encode({ status = 'unsealing' }) } -- its members are being taken out of it
end
local may_repeat = open(batch)
batch.st = 'sending'
wake(ref, now + lease)
redis.call('SET', key('batch', parts[2]), cjson.encode(batch))
if batch.kind then
  local head = { status = 'send', attempt = batch.n, ['repeat'] = may_repeat, tries = batch.x or 0, created = batch.c,
    kind = batch.kind, about = batch.about, d = batch.d, total = batch.total }
  return { cjson.encode(head) }
end
local members, payloads = {}, {}
for i, member in ipairs(batch.m) do
  local place = split_ref(member)
  local record = load_record(place[2])
  local n = tonumber(place[3])
  members[i] = describe(place[2], n, record, record.i[n + 1])
  payloads[i] = redis.call('GET', key('pay', place[2])) or ''
end
return answer(batch, may_repeat, members, payloads)
