#!lua flags=allow-oom
-- Writes an attempt's outcome. Runs when memory is full: an outcome that is not recorded is a repeat.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: ref, token, outcome (delivered | retry | dead | split), at? (retry), counts (whether the try is
--          used up), lost (answer lost), reason?, answer?, by, retention
-- Returns  JSON {status: settled | already | stale, halves? [ref], batch? (a summary: its members come next)}
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local ref = ask.ref
local parts = split_ref(ref)

local function note(holder)
  remember(holder, { n = holder.n, at = now, o = ask.outcome, r = ask.reason, a = ask.answer, by = ask.by })
  if ask.lost then
    holder.rr = (holder.rr or 0) + 1
  end
  if ask.counts then
    holder.x = (holder.x or 0) + 1
  end
  holder.tok = nil
end

local function wait(holder)
  holder.at = ask.at
  wake(ref, ask.at)
end

local function settle_item()
  local rid, n = parts[2], tonumber(parts[3])
  local record = load_record(rid)
  local item = record and record.i[n + 1]
  if not item or final[item.st] then
    return { status = 'already' }
  end
  if ask.outcome ~= 'delivered' and item.tok ~= ask.token then
    return { status = 'stale' }
  end
  note(item)
  if final[ask.outcome] then
    end_item(rid, n, record, item, ask)
  else
    wait(item)
    move(item, 'retrying')
    save_record(rid, record)
  end
  return { status = 'settled' }
end

-- Two sealed halves with ids of their own take the place of a batch that was refused as a whole.
local function halve(batch)
  local halves = {}
  local middle = math.ceil(#batch.m / 2)
  for half = 1, 2 do
    local members = {}
    for i = half == 1 and 1 or middle + 1, half == 1 and middle or #batch.m do
      members[#members + 1] = batch.m[i]
    end
    local bid = redis.sha1hex(table.concat(members, ' '))
    local part = { k = batch.k, d = batch.d, m = members, n = 0, st = 'queued', c = batch.c, h = batch.h, rr = batch.rr }
    for _, member in ipairs(members) do
      local place = split_ref(member)
      local record = load_record(place[2])
      record.i[tonumber(place[3]) + 1].b = bid
      save_record(place[2], record)
    end
    redis.call('SET', key('batch', bid), cjson.encode(part))
    halves[half] = 'b:' .. bid .. ':' .. batch.k
    wake(halves[half], now)
  end
  return halves
end

local function settle_batch()
  local name = key('batch', parts[2])
  local text = redis.call('GET', name)
  if not text then
    return { status = 'already' }
  end
  local batch = cjson.decode(text)
  if ask.outcome ~= 'delivered' and batch.tok ~= ask.token then
    return { status = 'stale' }
  end
  note(batch)
  if ask.outcome == 'retry' then
    wait(batch)
    batch.st = 'retrying'
    redis.call('SET', name, cjson.encode(batch))
    return { status = 'settled' }
  end
  if batch.kind then
    batch.o = ask.outcome
    redis.call('SET', name, cjson.encode(batch))
    wake(ref, now) -- until its members are settled too
    return { status = 'settled', batch = batch }
  end
  unwake(ref)
  redis.call('DEL', name)
  if ask.outcome == 'split' then
    return { status = 'settled', halves = halve(batch) }
  end
  for _, member in ipairs(batch.m) do
    local place = split_ref(member)
    local record = load_record(place[2])
    local n = tonumber(place[3])
    local item = record.i[n + 1]
    item.n = batch.n
    item.h = batch.h
    item.rr = math.max(item.rr or 0, batch.rr or 0)
    end_item(place[2], n, record, item, ask)
  end
  return { status = 'settled' }
end

return cjson.encode(parts[1] == 'i' and settle_item() or settle_batch())
