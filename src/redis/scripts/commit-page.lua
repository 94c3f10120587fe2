-- Takes one page in: marks, records, items, counters and cursor change together or not at all.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: feed, seq (expected), cid (commit id), gen, fp (walk fingerprint), horizon, retention
--          {story, payload}, detail_wait, requested, caught_up (bool), backfill (bool), newest?,
--          events [{u, rid, sv, rk, ty, seen {m, b}, l (labels), w (decisions), dt (detail wanted),
--          items [{d, k, q (routes), m, b, bw?}]}], bad [{rid, m, b, uid?, problem}]
-- ARGV[2]  the walk after this page, stored as it is
-- ARGV[3…] one payload for each event, then one raw text for each bad item
-- Returns  JSON {status: committed | stale | superseded, counts, made? [{ref, k, sv, rk, kind}], fresh? [places of
--          the new events]}
-- @include lib/ledger.lua
-- @include lib/marks.lua

local ask = cjson.decode(ARGV[1])
local feed = key('feed', ask.feed)
local state = redis.call('HMGET', feed, 'seq', 'cid', 'result', 'gen', 'fp')

if state[2] == ask.cid then
  return state[3]
end
if tonumber(state[4] or '0') > ask.gen and state[5] ~= ask.fp then
  return cjson.encode({ status = 'superseded' })
end
if tonumber(state[1] or '0') ~= ask.seq then
  return cjson.encode({ status = 'stale' })
end

local weeks = open_weeks(ask.horizon)
open_this_week(weeks)
local counts = { fetched = #ask.events + #ask.bad, new = 0, duplicate = 0, quarantined = 0 }
local made = {}
local fresh = {}

local function has_item(record, candidate, rank)
  for _, item in ipairs(record.i) do
    if item.d == candidate.d and item.rk >= rank then
      return true
    end
  end
  return false
end

local function add_item(event, record, candidate, held)
  local item = { d = candidate.d, k = candidate.k, q = candidate.q, rk = event.rk, sv = event.sv, g = #record.f, c = now, n = 0 }
  record.i[#record.i + 1] = item
  local n = #record.i - 1
  bump('s|' .. item.k .. '|created', 1)
  redis.call('SADD', key('sinks'), item.k)
  local kind = 'single'
  if held then
    move(item, 'held')
    item.why = 'detail'
    item.at = now + ask.detail_wait
    wake(item_ref(event.rid, n, item), item.at)
    kind = 'detail'
  else
    enqueue(event.rid, n, item, candidate.bw)
    if candidate.bw then
      kind = 'collect'
    end
  end
  made[#made + 1] = { ref = item_ref(event.rid, n, item), k = item.k, sv = item.sv, rk = item.rk, kind = kind }
end

local function keep_payload(event, record, payload, changed)
  local name = key('pay', event.rid)
  if changed or redis.call('EXISTS', name) == 0 then
    redis.call('SET', name, payload)
  end
  rest(event.rid, record, ask.retention)
end

-- An entry closes when its uid parses, when its time is over, or when a thousand newer ones came.
local function close_entry(id)
  local text = redis.call('HGET', key('quarantine'), id)
  local uid = text and cjson.decode(text).uid
  redis.call('HDEL', key('quarantine'), id)
  redis.call('ZREM', key('quarantine-ages'), id)
  if uid and redis.call('HGET', key('quarantine-uids'), uid) == id then
    redis.call('HDEL', key('quarantine-uids'), uid)
  end
end

-- An event that the feed showed before is a duplicate; one that came back more severe is routed again.
local function take_in(place, event, payload)
  local record = load_record(event.rid)
  local raised = record and event.rk > record.rk
  if is_marked(weeks, event.seen, ask.horizon) then
    counts.duplicate = counts.duplicate + 1
    if not raised then
      return
    end
  else
    write_mark(weeks, event.seen, ask.horizon)
    counts.new = counts.new + 1
    fresh[#fresh + 1] = place
  end
  record = record or { u = event.u, ty = event.ty, rk = event.rk, sv = event.sv, t = now, f = {}, i = {} }
  if raised then
    record.rk = event.rk
    record.sv = event.sv
  end
  record.f[#record.f + 1] = { f = ask.feed, at = now, sv = event.sv, l = event.l, w = event.w }
  for _, candidate in ipairs(event.items) do
    if not has_item(record, candidate, event.rk) and not is_marked(weeks, candidate, ask.horizon) then
      write_mark(weeks, candidate, ask.horizon)
      add_item(event, record, candidate, event.dt)
    end
  end
  save_record(event.rid, record)
  keep_payload(event, record, payload, raised)
  local entry = redis.call('HGET', key('quarantine-uids'), event.u)
  if entry then
    close_entry(entry)
  end
end

local function trim_quarantine()
  local ages = key('quarantine-ages')
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ages, '-inf', now - ask.retention.story)) do
    close_entry(id)
  end
  for _, id in ipairs(redis.call('ZRANGE', ages, 0, -1 - 1000)) do
    close_entry(id)
  end
end

local function set_aside(bad, raw)
  if is_marked(weeks, bad, ask.horizon) then
    counts.duplicate = counts.duplicate + 1
    return
  end
  write_mark(weeks, bad, ask.horizon)
  counts.quarantined = counts.quarantined + 1
  local entry = { feed = ask.feed, at = now, problem = bad.problem, uid = bad.uid, raw = raw }
  redis.call('HSET', key('quarantine'), bad.rid, cjson.encode(entry))
  redis.call('ZADD', key('quarantine-ages'), now, bad.rid)
  if bad.uid then
    redis.call('HSET', key('quarantine-uids'), bad.uid, bad.rid)
  end
  trim_quarantine()
end

for i, event in ipairs(ask.events) do
  take_in(i - 1, event, ARGV[2 + i])
end
for i, bad in ipairs(ask.bad) do
  set_aside(bad, ARGV[2 + #ask.events + i])
end
for name, by in pairs(counts) do
  bump('f|' .. ask.feed .. '|' .. name, by)
end

local answer = { status = 'committed', counts = counts, at = now }
if #made > 0 then
  answer.made = made
end
if #fresh > 0 then
  answer.fresh = fresh
end
local result = cjson.encode(answer)
redis.call('HSET', feed, 'seq', ask.seq + 1, 'cid', ask.cid, 'result', result, 'gen', math.max(ask.gen, tonumber(state[4] or '0')),
  'fp', ask.fp, 'walk', ARGV[2], 'success', ask.requested, 'backfill', ask.backfill and 1 or 0)
if ask.caught_up then
  redis.call('HSET', feed, 'caught_up', ask.requested)
end
if ask.newest then
  local newest = math.min(ask.newest, now)
  if newest > tonumber(redis.call('HGET', feed, 'newest') or '0') then
    redis.call('HSET', feed, 'newest', newest)
  end
end
return result
