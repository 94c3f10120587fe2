#!lua flags=allow-oom
-- Claims what is due for one sink: the worst first, one place in ten for the longest waiting. A
-- claim is no attempt: it keeps other processes away until its lease ends. What is for a destination
-- in trouble is put off instead, so that it takes nobody's place. Of a sink noted as gone nothing is
-- claimed. Runs when memory is full: only what has left can make room.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: sink, owner, lease (ms), max (refs), bytes (of events; the last claim may exceed
--          it), least (lowest rank; the longest waiting may be lower), ref? (claim only this one,
--          if it is due), probe? (any | untried: claim one, as the probe of the sink's circuit),
--          waits? {destination: ms that its messages are put off; 0: one may go, as its probe}
-- Returns  {JSON {claims? [{kind: item | batch | summary | detail | collection | settling |
--          unfreezing, ref, rank, attempts, tries, created, repeat, failed?, members? [{rid, n (its
--          item's place), at (which of the events below, from 0)}] | d, about, total | batch, probe?
--          (of its destination)}], left (due and unclaimed), top? (worst rank of those), next? (ms
--          until the next ref is due), off? (ms until the first of those that were put off is due)},
--          record and payload of each event, …}
-- @include lib/ledger.lua
-- @include lib/attempts.lua

local ask = cjson.decode(ARGV[1])
if redis.call('SISMEMBER', key('gone'), ask.sink) == 1 then
  return { '{"left":0}' }
end
local due, ready, readied = key('due', ask.sink), key('ready', ask.sink), key('readied')
local looked = 200
local waits = ask.waits or {}
local probe_wait = 5000 -- ms that messages wait for the outcome of their destination's probe

local function load_batch(bid)
  local text = redis.call('GET', key('batch', bid))
  return text and cjson.decode(text)
end

-- The item or the batch; nil for what a sink collects, and for what is gone.
local function holder_of(ref)
  local place = split_ref(ref)
  if place[1] == 'i' then
    return select(4, load_item(ref))
  end
  return place[1] == 'b' and load_batch(place[2]) or nil
end

local function rank_of(ref)
  local holder = holder_of(ref)
  return holder and holder.rk or default_rank
end

local times_come = redis.call('ZCOUNT', due, '-inf', now)

-- Adds refs whose time has come to the ready set, at most `looked` at a time. `field` keeps the
-- position where the last call ended: "<ms> <ref>", or "<ms>" if everything due by then had been
-- added. Returns whether it reached the end.
local function promote(field)
  local ms, ref = string.match(redis.call('HGET', readied, field) or '0', '^(%d+) ?(.*)$')
  local start = count_up_to(due, string.format('%.0f ', math.min(tonumber(ms), now)) .. ref)
  local behind = math.min(start + looked, times_come)
  local found = start < behind and redis.call('ZRANGE', due, start, behind - 1, 'WITHSCORES') or {}
  for i = 1, #found, 2 do
    if not redis.call('ZSCORE', ready, found[i]) then
      redis.call('ZADD', ready, ready_score(rank_of(found[i]), tonumber(found[i + 1])), found[i])
    end
  end
  local is_end = behind == times_come
  redis.call('HSET', readied, field, is_end and now or string.format('%.0f ', tonumber(found[#found])) .. found[#found - 1])
  return is_end
end

-- The longest waiting first, whatever their rank; up to `count` of each rank.
local function longest_waiting(count)
  local heads = {}
  for rank = 1, 5 do
    local low, high = ready_score(rank, 0), ready_score(rank - 1, 0)
    local band = redis.call('ZRANGEBYSCORE', ready, low, '(' .. high, 'WITHSCORES', 'LIMIT', 0, count)
    for i = 1, #band, 2 do
      heads[#heads + 1] = { ref = band[i], at = tonumber(band[i + 1]) - low }
    end
  end
  table.sort(heads, function(a, b)
    return a.at < b.at or (a.at == b.at and a.ref < b.ref)
  end)
  return heads
end

local put_off, off = 0, nil

-- Puts a message off whose destination is in trouble; returns whether it did. The sink's probe may
-- be such a message, where there is no other.
local function puts_off(ref, destination)
  local wait = ask.probe ~= 'any' and waits[destination] or 0
  if wait > 0 then
    wake(ref, now + wait)
    put_off, off = put_off + 1, math.min(off or wait, wait)
  end
  return wait > 0
end

-- Calls `visit` with refs and what they name, the worst rank first, of each rank the newest and the oldest, `count`
-- at most. Ends when it returns true.
local function look_through(count, visit)
  for rank = 5, 1, -1 do
    local low, high = ready_score(rank, 0), '(' .. ready_score(rank - 1, 0)
    local share = math.floor(count / (2 * rank))
    local newest = redis.call('ZREVRANGEBYSCORE', ready, high, low, 'LIMIT', 0, share)
    local oldest = #newest < share and {} or redis.call('ZRANGEBYSCORE', ready, low, high, 'LIMIT', 0, share)
    count = count - #newest - #oldest
    for i = 1, #newest + #oldest do
      local ref = newest[i] or oldest[i - #newest]
      if visit(ref, holder_of(ref) or {}) then
        return
      end
    end
  end
end

-- When it was tried last; 0: never.
local function tried_at(holder)
  local past = (holder.n or 0) > 0 and (holder.h or {})
  return past and (past[#past] or { at = 1 }).at or 0
end

-- The probes of the sink or destinations that `missing` names: what was never tried, the worst and
-- newest first, then what was tried longest ago. So a message that is refused again and again, or a
-- thousand like it, leave the next probe to another. The sink's is one for a destination in trouble
-- only where the sink has nothing else.
local function choose_probes(count, missing)
  local found, tried, spare = {}, {}, nil
  look_through(count, function(ref, holder)
    local whose, at = ask.probe and ask.sink or holder.d, tried_at(holder)
    local is_message = holder.d and not (holder.o or holder.un or holder.st == 'held')
    if is_message and puts_off(ref, holder.d) then
      return false
    elseif is_message and (waits[holder.d] or 0) > 0 then
      spare = spare or ref
    elseif missing[whose] and (at == 0 or ask.probe ~= 'untried') and at < (tried[whose] or math.huge) then
      found[whose], tried[whose] = ref, at
      missing[whose] = at > 0 or nil
    end
    return not next(missing)
  end)
  local refs = {}
  for _, ref in pairs(found) do
    refs[#refs + 1] = ref
  end
  return #refs > 0 and refs or { spare }
end

local function choose()
  if ask.ref then
    return { ask.ref }
  elseif ask.probe then
    return choose_probes(10 * looked, { [ask.sink] = true })
  end
  local chosen = redis.call('ZRANGEBYSCORE', ready, '-inf', '(' .. ready_score(ask.least - 1, 0), 'LIMIT', 0, ask.max)
  local place = tonumber(redis.call('HGET', readied, ask.sink .. '|turn') or '0')
  local owed = math.floor((place + ask.max) / 10) - math.floor(place / 10)
  if redis.call('ZCARD', ready) == #chosen then
    return chosen -- all fit: no place has to be reserved
  end
  redis.call('HSET', readied, ask.sink .. '|turn', (place + ask.max) % 10)
  local is_chosen = {}
  for i = #chosen, ask.max - owed + 1, -1 do
    chosen[i] = nil
  end
  for _, ref in ipairs(chosen) do
    is_chosen[ref] = true
  end
  for _, head in ipairs(owed > 0 and longest_waiting(ask.max) or {}) do
    if #chosen < ask.max and owed > 0 and not is_chosen[head.ref] then
      chosen[#chosen + 1] = head.ref
      owed = owed - 1
    end
  end
  return chosen
end

local claims, texts, bytes = {}, {}, 0
local function add(head, destination)
  if destination and waits[destination] == 0 then
    head.probe = true
    waits[destination] = probe_wait
  end
  claims[#claims + 1] = head
  return head
end

local places = {}
local function add_event(rid, n)
  if not places[rid] then
    local record, payload = unit.stored[rid], payload_of(rid)
    places[rid] = #texts / 2
    texts[#texts + 1], texts[#texts + 2] = record, payload
    bytes = bytes + #record + #payload
  end
  return { rid = rid, n = n, at = places[rid] }
end

-- Adds a claim; returns false if nothing can be done for the item any more, which then stops being due. Returns nil
-- if it was put off.
local function take_item(ref)
  local rid, n, _, item = load_item(ref)
  if item and item.st == 'held' and item.why == 'detail' then
    add({ kind = 'detail', ref = ref, rank = item.rk })
    return true
  end
  if not is_sendable(item) then
    return false
  elseif puts_off(ref, item.d) then
    return nil
  end
  local head = add(head_of('item', ref, item, item.rk), item.d)
  head.d, head.members = item.d, { add_event(rid, n) }
  return true
end

-- A Redis that may evict can have lost the record of a member: the others go.
local function take_members(ref, batch, rank)
  local members = {}
  for _, member in ipairs(batch.m) do
    local rid, n, _, item = load_item(member)
    if item then
      members[#members + 1] = add_event(rid, n)
    end
  end
  if #members == 0 then
    return false
  end
  local head = add(head_of('batch', ref, batch, rank), batch.d)
  head.d, head.members = batch.d, members
  return true
end

local function take_batch(ref, place)
  local batch = load_batch(place[2])
  if not batch then
    return false
  end
  local rank = batch.rk or default_rank
  if batch.o then
    -- its outcome is known, some members are not settled yet
    add({ kind = 'settling', ref = ref, rank = rank, batch = batch })
  elseif batch.un then
    add({ kind = 'unfreezing', ref = ref, rank = rank }) -- its members are being returned singly
  elseif puts_off(ref, batch.d) then
    return nil
  elseif batch.kind then
    local head = add(head_of('summary', ref, batch, rank), batch.d)
    head.about, head.d, head.total = batch.about, batch.d, batch.total
  else
    return take_members(ref, batch, rank)
  end
  return true
end

local function take(ref)
  local place = split_ref(ref)
  if place[1] == 'i' then
    return take_item(ref)
  elseif place[1] == 'b' then
    return take_batch(ref, place)
  elseif redis.call('EXISTS', key('collect', place[2])) == 1 then
    add({ kind = 'collection', ref = ref, rank = default_rank })
    return true
  end
  return false
end

promote(ask.sink)
if redis.call('ZCARD', ready) < times_come then
  -- a clock jumped, or somebody moved times by hand: add refs from the start, some at each call
  local field = ask.sink .. '|again'
  if promote(field) then
    redis.call('HDEL', readied, field)
  end
end

local function claim_all(refs)
  local times = #refs > 0 and redis.call('ZMSCORE', due, unpack(refs)) or {}
  for i, ref in ipairs(refs) do
    local at = tonumber(times[i] or '')
    if bytes > ask.bytes then
      break
    elseif not at or (at > now and redis.call('HEXISTS', key('claims'), ref) == 1) then
      put(ready, ref, false) -- it is settled, or claimed
    else
      local taken = take(ref)
      if taken then
        claim(ref, ask.owner, ask.lease, at)
      elseif taken == false then
        unwake(ref)
      end
    end
  end
  write_sets() -- what follows reads them
end

local probed = {}
for destination, wait in pairs(waits) do
  probed[destination] = wait == 0 or nil
end
if next(probed) and not (ask.ref or ask.probe) then
  claim_all(choose_probes(looked, probed))
end
-- what is put off leaves its place, up to a number that takes Redis no longer than a claim
repeat
  local before = put_off
  claim_all(choose())
until #claims > 0 or put_off == before or put_off >= looked or ask.ref or ask.probe

local worst_left = redis.call('ZRANGE', ready, 0, 0, 'WITHSCORES')[2]
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
table.insert(texts, 1, cjson.encode({
  claims = #claims > 0 and claims or nil,
  left = redis.call('ZCARD', ready),
  top = worst_left and 10 - math.floor(tonumber(worst_left) / 1e13) or nil,
  next = first and math.max(0, tonumber(first) - now) or nil,
  off = off,
}))
return texts
