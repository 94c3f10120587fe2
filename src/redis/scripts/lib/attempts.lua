-- What claiming, settling and freezing share: how an item or a message is described to who sends it.

local function describe(rid, n, record, item)
  local sight = record.f[item.g]
  return { rid = rid, n = n, u = record.u, sv = item.sv, d = item.d, q = item.q, f = sight.f, l = sight.l, at = sight.at, ty = record.ty,
    rf = item.rf, cl = record.cl }
end

-- What is known of an item or a message before its next attempt.
local function head_of(kind, ref, holder, rank)
  return { kind = kind, ref = ref, rank = rank, attempts = holder.n, tries = holder.x or 0, created = holder.c,
    ['repeat'] = holder.st == 'sending' or (holder.rr or 0) > 0 }
end

local function payload_of(rid)
  return redis.call('GET', key('pay', rid)) or ''
end

-- A claim names who holds a ref, and since when it was due.
local function claim(ref, owner, lease, due_since)
  redis.call('ZADD', due_of(ref), now + lease, ref)
  redis.call('ZREM', key('ready', sink_of(ref)), ref)
  redis.call('HSET', key('claims'), ref, owner .. ' ' .. string.format('%.0f', due_since))
end

-- Since when a ref was due that this owner holds; nil: it does not hold it.
local function held_since(ref, owner)
  local holder, since = string.match(redis.call('HGET', key('claims'), ref) or '', '^(%S+) (%d+)$')
  return holder == owner and tonumber(since) or nil
end

-- Whether an attempt can move it: neither settled nor in a message, with a sink, and waiting for no company.
local function is_sendable(item)
  return item and not final[item.st] and item.st ~= 'batch' and item.why ~= 'orphaned' and not item.y
end

-- What became of a message is told of a member; how: {outcome, n (attempts), h? (their notes), rr?, retention}.
local function settle_member(ref, how)
  local place = split_ref(ref)
  local record, n = load_record(place[2]), tonumber(place[3])
  local item = record and record.i[n + 1]
  if item then
    item.n = how.n
    item.h = how.h
    item.rr = math.max(item.rr or 0, how.rr or 0)
    end_item(place[2], n, record, item, how)
  end
end
