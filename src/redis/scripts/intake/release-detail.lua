#!lua flags=allow-oom
-- Stores a record's full event, or that it is unavailable, and queues the items that waited for it.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: rid, sinks {sink: batch wait in ms, or false}, title? {now (by the full event), before?
--          (which it replaces)}, of? [term] (logins and hosts that it names), retention {history} (ms)
-- ARGV[2]  the full event, JSON; one that is stored already stays
-- Returns  JSON {made? [{ref, k, sv, rk, kind}]}
-- @include lib/ledger.lua
-- @include lib/terms.lua

local ask = cjson.decode(ARGV[1])
local record = load_record(ask.rid)
if not record then
  return '{}'
end

local function is_wanted()
  for _, item in ipairs(record.i) do
    if item.st == 'held' and item.why == 'detail' then
      return true
    end
  end
  return false
end

-- To what is stored now: the event may have come back more severe since its full event was asked for. The title that
-- it came back with stays.
local function add_detail()
  local name = key('pay', ask.rid)
  local payload = redis.call('GET', name)
  if payload and string.sub(payload, 1, 10) ~= '{"detail":' then
    store(name, '{"detail":' .. ARGV[2] .. ',' .. string.sub(payload, 2))
  end
  local shown = ask.title and shown_of(ask.rid)
  if shown and shown.about.title == ask.title.before then
    shown.about.title = ask.title.now
    unit.shown[ask.rid] = cjson.encode(shown)
  end
end

local is_late = not is_wanted() or is_on_its_way(ask.rid, record)
if not is_late then
  add_detail()
end
for _, term in ipairs(ask.of or {}) do
  note_victim(ask.rid, record, term, ask.retention.history, is_late)
end
local made = {}
for i, item in ipairs(record.i) do
  local sink = ask.sinks[item.k]
  if item.st == 'held' and item.why == 'detail' and sink ~= nil then
    if item.place then
      open_group(item.place)
    end
    local kind = enqueue(ask.rid, i - 1, item, sink or nil)
    made[#made + 1] = { ref = item_ref(ask.rid, i - 1, item), k = item.k, sv = item.sv, rk = item.rk, kind = kind }
  end
end
save_record(ask.rid, record)
return cjson.encode({ made = #made > 0 and made or nil })
