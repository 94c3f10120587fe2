-- Holds an item whose sink the configuration no longer has, or takes it back when the sink is there again.
-- KEYS[1]  the account's base
-- ARGV     ref, verb (hold | return), batch wait in ms or ''
-- Returns  1 when something changed
-- @include lib/ledger.lua

local ref, verb = ARGV[1], ARGV[2]
local place = split_ref(ref)

local function change_item(place, change)
  local rid, n = place[2], tonumber(place[3])
  local record = load_record(rid)
  local item = record and record.i[n + 1]
  if item and not final[item.st] then
    change(rid, n, item)
    save_record(rid, record)
  end
end

-- A send that is under way may yet be accepted: the next one has to say that it may be a repeat.
local function risks_of(holder)
  return (holder.rr or 0) + (holder.st == 'sending' and 1 or 0)
end

local batch_risks = 0

local function hold(rid, n, item)
  item.rr = math.max(risks_of(item), batch_risks)
  move(item, 'held')
  item.why = 'orphaned'
  item.at = nil
  item.b = nil
  item.tok = nil -- a send under way may still say that it was delivered, and nothing else
  unwake(item_ref(rid, n, item))
  redis.call('SADD', key('orphans', item.k), item_ref(rid, n, item))
end

local function hold_refs(refs)
  for _, member in ipairs(refs) do
    change_item(split_ref(member), hold)
  end
end

if verb == 'return' then
  redis.call('SREM', key('orphans', place[4]), ref)
  change_item(place, function(rid, n, item)
    if item.st == 'held' and item.why == 'orphaned' then
      enqueue(rid, n, item, tonumber(ARGV[3]))
    end
  end)
  return 1
end

unwake(ref)
if place[1] == 'i' then
  hold_refs({ ref })
elseif place[1] == 'c' then
  hold_refs(redis.call('ZRANGE', key('collect', place[2]), 0, -1))
  redis.call('DEL', key('collect', place[2]))
else
  local text = redis.call('GET', key('batch', place[2]))
  if text then
    local batch = cjson.decode(text)
    batch_risks = risks_of(batch)
    hold_refs(batch.m)
    redis.call('DEL', key('batch', place[2]))
  end
end
return 1
