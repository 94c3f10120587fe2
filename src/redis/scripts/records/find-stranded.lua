-- Finds pending items that nothing will ever move: each must be in the set that its mover reads.
-- Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     ids of records
-- Returns  JSON [{r (ref), u (uid), k (sink), st (state), why?, b? (its message), lacks: due |
--          collection | timer | message | message_due | lead (its message is not stored
--          here; another account may hold it, or a flush may be about to write it)}]
-- @include lib/ledger.lua

local function has_due(ref)
  return redis.call('ZSCORE', due_of(ref), ref) and true or false
end

local function lack_in_collection(ref, item)
  if not redis.call('ZSCORE', key('collect', item.y), ref) then
    return 'collection'
  end
  local timer = redis.call('ZSCORE', key('timers'), 'c:' .. item.y .. ':' .. item.k)
  -- the timer of a group without settings is dropped when it fires
  local is_known = redis.call('HEXISTS', key('group', item.y), 'kind') == 1
  return not (timer and is_known) and 'timer' or nil
end

-- The members of a batch by ref; {} for a summary, whose members are in `members`; false if it is
-- gone.
local messages = {}
local function message_of(bid)
  if messages[bid] == nil then
    local text = redis.call('GET', key('batch', bid))
    local members = {}
    for _, ref in ipairs(text and cjson.decode(text).m or {}) do
      members[ref] = true
    end
    messages[bid] = text and members or false
  end
  return messages[bid]
end

local function lack_in_message(ref, item)
  local message = item.b and message_of(item.b)
  local is_member = item.b and (message and message[ref] or redis.call('ZSCORE', key('members', item.b), ref))
  if not is_member then
    return 'message'
  end
  if not message then
    return 'lead'
  end
  return not has_due('b:' .. item.b .. ':' .. item.k) and 'message_due' or nil
end

-- Whether the item waits in its sink's batch, and that batch is due at some time.
local function is_in_batch(ref, item)
  return item.st == 'queued' and redis.call('ZSCORE', key('collect', item.k), ref) and has_due('c:' .. item.k)
end

local function lack_of(ref, item)
  if item.st == 'batch' then
    return lack_in_message(ref, item)
  elseif item.y and item.why ~= 'detail' then
    return lack_in_collection(ref, item)
  elseif has_due(ref) then
    return nil
  end
  return not is_in_batch(ref, item) and 'due' or nil
end

local found = {}
for _, rid in ipairs(ARGV) do
  local record = load_record(rid)
  for i, item in ipairs(record and record.i or {}) do
    local ref = item_ref(rid, i - 1, item)
    local lacks = not final[item.st] and lack_of(ref, item)
    if lacks then
      found[#found + 1] = { r = ref, u = shown_of(rid).u, k = item.k, st = item.st, why = item.why, b = item.b, lacks = lacks }
    end
  end
end
return #found > 0 and cjson.encode(found) or '[]'
