#!lua flags=allow-oom
-- A claim update: records the outcomes of attempts, gives claims back, opens the next attempts and
-- renews leases, in this order. Runs when memory is full: an outcome that is not recorded becomes a
-- repeat.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: owner, lease (ms), by (replica, for the notes), retention {history, payload} (ms),
--          settle? [{ref, token, outcome (delivered | retry | dead | split | unsent), wait? (of a
--          retry, ms), counts (it counts as a try), lost (the answer was lost), reason?, answer?}],
--          begin? [{ref, token}],
--          renew? [ref],
--          back? [{ref, rank, wait? (ms; without it due since when it was before)}]
-- Returns  JSON {settled? [{status: settled | already | stale, halves? [ref], batch? (a summary;
--          its members remain to be settled)}], begun? [{attempt, repeat} | {} (claimed by another
--          owner, or nothing is left to send)], lost? [ref] (of renew)}; settled and begun in the
--          order asked
-- @include lib/ledger.lua
-- @include lib/attempts.lua

local ask = cjson.decode(ARGV[1])

-- Settling ----------------------------------------------------------------------------------------

local function note(holder, result)
  remember(holder, { n = holder.n, from = holder.at, at = now, o = result.outcome, r = result.reason, a = result.answer, by = ask.by })
  if result.lost then
    holder.rr = (holder.rr or 0) + 1
  end
  if result.counts then
    holder.x = (holder.x or 0) + 1
  end
  holder.tok = nil
end

-- Takes back an attempt that was opened and never sent.
local function undo(holder)
  holder.n = holder.n - 1
  holder.tok = nil
  holder.at = nil
  return holder.n > 0 and 'retrying' or 'queued'
end

local function settle_item(result)
  local rid, n, record, item = load_item(result.ref)
  if not item or final[item.st] then
    return { status = 'already' }
  end
  if result.outcome ~= 'delivered' and item.tok ~= result.token then
    return { status = 'stale' }
  end
  if result.outcome == 'unsent' then
    move(item, undo(item))
    wake(result.ref, now, item.rk)
    save_record(rid, record)
    return { status = 'settled' }
  end
  note(item, result)
  if result.outcome == 'delivered' and not item.own then
    tally('message', item.d)
  end
  if final[result.outcome] then
    end_item(rid, n, record, item, { outcome = result.outcome, retention = ask.retention })
  else
    item.at = math.floor(now + result.wait)
    wake(result.ref, item.at, item.rk)
    move(item, 'retrying')
    save_record(rid, record)
  end
  return { status = 'settled' }
end

-- Replaces a batch that was refused as a whole by two frozen halves with ids of their own.
local function halve(batch)
  local halves = {}
  local middle = math.ceil(#batch.m / 2)
  for half = 1, 2 do
    local members = {}
    for i = half == 1 and 1 or middle + 1, half == 1 and middle or #batch.m do
      members[#members + 1] = batch.m[i]
    end
    local bid = redis.sha1hex(table.concat(members, ' '))
    local part = { k = batch.k, d = batch.d, m = members, n = 0, st = 'queued', c = batch.c, h = batch.h, rr = batch.rr, rk = batch.rk }
    for _, member in ipairs(members) do
      local rid, _, record, item = load_item(member)
      if item then
        item.b = bid
        save_record(rid, record)
      end
    end
    redis.call('SET', key('batch', bid), cjson.encode(part))
    halves[half] = 'b:' .. bid .. ':' .. batch.k
    wake(halves[half], now, batch.rk)
  end
  return halves
end

local function settle_batch(result, bid)
  local name = key('batch', bid)
  local text = redis.call('GET', name)
  local batch = text and cjson.decode(text)
  if not batch then
    return { status = 'already' }
  end
  if result.outcome ~= 'delivered' and batch.tok ~= result.token then
    return { status = 'stale' }
  end
  if batch.o == result.outcome then
    return { status = 'settled', batch = batch } -- the reply was lost
  end
  if result.outcome == 'unsent' then
    batch.st = undo(batch)
    wake(result.ref, now, batch.rk)
    redis.call('SET', name, cjson.encode(batch))
    return { status = 'settled' }
  end
  note(batch, result)
  if result.outcome == 'delivered' and not batch.own then
    tally('message', batch.d)
  end
  if result.outcome == 'retry' then
    batch.at = math.floor(now + result.wait)
    batch.st = 'retrying'
    wake(result.ref, batch.at, batch.rk)
    redis.call('SET', name, cjson.encode(batch))
    return { status = 'settled' }
  end
  if batch.kind then
    batch.o = result.outcome
    redis.call('SET', name, cjson.encode(batch))
    wake(result.ref, now, batch.rk) -- stays due until its members are settled too
    return { status = 'settled', batch = batch }
  end
  unwake(result.ref)
  redis.call('DEL', name)
  if result.outcome == 'split' then
    return { status = 'settled', halves = halve(batch) }
  end
  if #batch.m > 1 then
    keep_told(bid, cjson.encode(batch.m), ask.retention.payload)
  end
  for _, member in ipairs(batch.m) do
    settle_member(member, { outcome = result.outcome, n = batch.n, h = batch.h, rr = batch.rr, retention = ask.retention })
  end
  return { status = 'settled' }
end

-- Opening -----------------------------------------------------------------------------------------

-- Opens an attempt; returns whether an earlier one may have been accepted. The same token is the
-- same attempt: the script ran twice because its reply was lost.
local function open(holder, token)
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

local function extend(ref)
  put(due_of(ref), ref, now + ask.lease)
end

local function begin_item(attempt)
  local rid, _, record, item = load_item(attempt.ref)
  if not is_sendable(item) then
    unwake(attempt.ref)
    return {}
  end
  local may_repeat = open(item, attempt.token)
  move(item, 'sending')
  item.why = nil
  save_record(rid, record)
  extend(attempt.ref)
  return { attempt = item.n, ['repeat'] = may_repeat }
end

local function begin_batch(attempt, bid)
  local name = key('batch', bid)
  local text = redis.call('GET', name)
  local batch = text and cjson.decode(text)
  if not batch or batch.o or batch.un then
    return {}
  end
  local may_repeat = open(batch, attempt.token)
  batch.st = 'sending'
  redis.call('SET', name, cjson.encode(batch))
  extend(attempt.ref)
  return { attempt = batch.n, ['repeat'] = may_repeat }
end

-- -------------------------------------------------------------------------------------------------

local answer = { settled = {}, begun = {}, lost = {} }

for i, result in ipairs(ask.settle or {}) do
  local place = split_ref(result.ref)
  answer.settled[i] = place[1] == 'i' and settle_item(result) or settle_batch(result, place[2])
end
for _, back in ipairs(ask.back or {}) do
  local since = held_since(back.ref, ask.owner)
  if since then
    wake(back.ref, back.wait and math.floor(now + back.wait) or since, back.rank)
  end
end
for i, attempt in ipairs(ask.begin or {}) do
  local place = split_ref(attempt.ref)
  if not held_since(attempt.ref, ask.owner) then
    answer.begun[i] = {}
  elseif place[1] == 'i' then
    answer.begun[i] = begin_item(attempt)
  else
    answer.begun[i] = begin_batch(attempt, place[2])
  end
end
for _, ref in ipairs(ask.renew or {}) do
  if held_since(ref, ask.owner) then
    extend(ref)
  else
    answer.lost[#answer.lost + 1] = ref
  end
end
for name, list in pairs(answer) do
  answer[name] = #list > 0 and list or nil
end
return cjson.encode(answer)
