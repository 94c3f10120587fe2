#!lua flags=allow-oom
-- Holds what a ref names because its sink is not in the configuration any more, or queues one held
-- item again once the sink is back.
-- KEYS[1]  the account's base
-- ARGV     ref, then either
--            hold, lost answers of the message so far (its head may be in another account)
--            return, batch wait in ms or '', JSON {destination: group}: the groups of items for people
-- Returns  1: done; 0: call again, more is to be held; 'answered': a summary whose outcome is known
--          is not held
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

-- Lost answers so far. A send that is under way may still be accepted, so it counts as one: the
-- next attempt says that it may be a repeat.
local function risks_of(holder)
  return (holder.rr or 0) + (holder.st == 'sending' and 1 or 0)
end

local batch_risks = tonumber(ARGV[3]) -- for hold only

local function hold(rid, n, item)
  item.rr = math.max(risks_of(item), batch_risks)
  if item.y then
    redis.call('ZREM', key('collect', item.y), item_ref(rid, n, item))
  end
  move(item, 'held')
  item.why = 'orphaned'
  item.at = nil
  item.b = nil
  item.y = nil
  item.tok = nil -- of a send under way only `delivered` is still accepted
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
      local group = cjson.decode(ARGV[4])[item.d]
      if group then
        open_group(group)
        item.y = group.id
      end
      enqueue(rid, n, item, tonumber(ARGV[3]))
    end
  end)
  return 1
end

local function hold_some(set)
  local refs = redis.call('ZRANGE', set, 0, 499)
  hold_refs(refs)
  for _, member in ipairs(refs) do
    redis.call('ZREM', set, member)
  end
  return redis.call('ZCARD', set) == 0
end

local function hold_batch(bid)
  local text = redis.call('GET', key('batch', bid))
  local batch = text and cjson.decode(text) or {}
  if batch.o then
    return 'answered'
  end
  batch_risks = math.max(batch_risks, risks_of(batch))
  hold_refs(batch.m or {})
  if not hold_some(key('members', bid)) then
    return 0
  end
  redis.call('DEL', key('batch', bid))
  return 1
end

if place[1] == 'i' then
  unwake(ref)
  hold_refs({ ref })
  return 1
end
local function hold_collection(id)
  if not hold_some(key('collect', id)) then
    return 0
  end
  redis.call('DEL', key('group', id), key('listed', id))
  return 1
end

local answer = place[1] == 'b' and hold_batch(place[2]) or hold_collection(place[2])
if answer == 1 then
  unwake(ref)
  redis.call('ZREM', key('timers'), ref)
end
return answer
