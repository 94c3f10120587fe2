-- For operators: moves a pending item to another sink, gives up a pending or dead one, or sends a final
-- one again. For failover (divert): reroutes an item whose sink cannot be reached to the sink's fallback.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: ref, verb (move | divert | discard | resend), by (who asked), bw? (resend: batch
--          wait in ms), was? (resend: the state in which it was found), horizon (ms), retention {history, payload} (ms), targets? [{d, k, m, b, bw?,
--          place? (group)}] (move, divert), stale (an attempt that began so many ms ago has died)
-- Returns  JSON {status: done | busy (being sent or in a frozen message; divert: also held until later;
--          resend: not final yet) | other (in no such state) | no_payload, made? [{ref, k, sv, rk,
--          kind}] (of targets)}
-- @include lib/ledger.lua
-- @include lib/marks.lua

local ask = cjson.decode(ARGV[1])
local rid, n, record, item = load_item(ask.ref)
if not item then
  return '{"status":"other"}'
end
local movable = { queued = true, held = true, group = true, digest = true, retrying = true }

local function take_out()
  leave_collection(ask.ref, item)
  unwake(ask.ref)
  item.y = nil
  item.at = nil
  item.tok = nil
end

local made = {}

local function note_made(m, one, kind)
  made[#made + 1] = { ref = item_ref(rid, m, one), k = one.k, sv = one.sv, rk = one.rk, kind = kind }
end

local function wait_in(one, group)
  if group then
    one.y = group.id
    one.ug = group.urgent or nil
    open_group(group)
  end
end

local max_past = 5

-- Queues a final item again under its id; its first outcome stays counted. `past`: how it ended before. Other
-- messages about the event go by the first of them, for their attempts must not change.
local function send_again(m, one, target)
  bump('s|' .. one.k .. '|replayed', 1)
  redis.call('ZREM', key('dead', one.k), item_ref(rid, m, one))
  local past = one.past or {}
  past[#past + 1] = { c = one.c, st = one.st, e = one.e, b = one.b, by = ask.by, at = now }
  if #past > max_past then
    table.remove(past, 2)
  end
  one.past = past
  one.x = nil
  one.b = nil
  one.y = nil
  one.c = now
  one.by = ask.by
  wait_in(one, target.place)
  return enqueue(rid, m, one, target.bw)
end

local function add_item(target)
  local known, m = find_item(record, target.d, item.rk)
  if known and known.st == 'diverted' then
    note_made(m, known, send_again(m, known, target))
  end
  local weeks = open_weeks(ask.horizon)
  if known or is_marked(weeks, target, ask.horizon) then
    return
  end
  write_mark(weeks, target, ask.horizon)
  local moved = { d = target.d, k = target.k, q = item.q, rk = item.rk, sv = item.sv, g = item.g, c = now, n = 0, rf = item.rf, own = item.own }
  moved.v = shown_of(rid).f[item.g].v
  record.i[#record.i + 1] = moved
  bump('s|' .. moved.k .. '|created', 1)
  redis.call('SADD', key('sinks'), moved.k)
  wait_in(moved, target.place)
  local n_moved = #record.i - 1
  note_made(n_moved, moved, enqueue(rid, n_moved, moved, target.bw))
end

-- Whether an item can leave. An attempt whose process died is over. An item that a mute holds, or
-- that waits for its full event, is not diverted before that time.
local function is_ready()
  if item.st == 'sending' and now - item.at >= ask.stale then
    item.rr = (item.rr or 0) + 1
    remember(item, { n = item.n, at = item.at, o = 'answer lost', r = 'interrupted' })
    return true
  end
  return movable[item.st] and (ask.verb ~= 'divert' or item.st ~= 'held' or (item.at or 0) <= now)
end

local function resend()
  if not final[item.st] then
    return 'busy'
  end
  if ask.was and item.st ~= ask.was then
    return 'other'
  end
  if redis.call('EXISTS', key('pay', rid)) == 0 then
    return 'no_payload'
  end
  item.rp = (item.rp or 0) + 1
  send_again(n, item, ask)
  return 'done'
end

-- The item stays counted as dead; only its letter is closed.
local function close_letter()
  redis.call('ZREM', key('dead', item.k), ask.ref)
  item.st = 'discarded'
  item.by = ask.by
  return 'done'
end

local function give_up()
  if ask.verb == 'discard' and item.st == 'dead' then
    return close_letter()
  end
  if final[item.st] then
    return 'other'
  end
  if not is_ready() then
    return 'busy'
  end
  take_out()
  if ask.targets then
    for _, target in ipairs(ask.targets) do
      add_item(target)
    end
    move(item, 'diverted', { rid = rid, n = n, reason = ask.verb == 'divert' and 'fallback' or 'moved', rule = ask.by })
  else
    move(item, 'dead', { rid = rid, n = n, reason = 'discarded', rule = ask.by })
    item.st = 'discarded' -- counted as dead, with its dead letter closed at once
  end
  item.why = nil
  item.by = ask.by
  return 'done'
end

local answer = ask.verb == 'resend' and resend() or give_up()
if answer == 'done' then
  rest(rid, record, ask.retention)
end
return cjson.encode({ status = answer, made = #made > 0 and made or nil })
