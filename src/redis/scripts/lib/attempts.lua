-- Shared by claiming, settling and freezing: how a claim is described to its sender, who holds a claim, how a member
-- is settled. Also what is kept of a message that was sent.

-- A claim as the sender receives it. `holder` is the item or message: n attempts, x tries that
-- count, rr lost answers. `repeat`: an earlier attempt may have been accepted. `failed`: when the
-- last attempt began, also that of the batch of which this is a half.
local function head_of(kind, ref, holder, rank)
  local past = holder.h and holder.h[#holder.h]
  return { kind = kind, ref = ref, rank = rank, attempts = holder.n, tries = holder.x or 0, created = holder.c, failed = past and (past.from or past.at),
    ['repeat'] = holder.st == 'sending' or (holder.rr or 0) > 0 }
end

local function payload_of(rid)
  return redis.call('GET', key('pay', rid)) or ''
end

-- Claims a ref: it is due again when the lease ends. The claim notes the owner and since when (ms)
-- the ref was due, so that giving it back restores that time.
local function claim(ref, owner, lease, due_since)
  local sink = sink_of(ref)
  put(key('due', sink), ref, now + lease)
  put(key('ready', sink), ref, false)
  unit.claims[ref] = owner .. ' ' .. string.format('%.0f', due_since)
end

-- Returns since when (ms) a ref was due that this owner holds; nil if it does not hold it.
local function held_since(ref, owner)
  local claimed = unit.claims[ref]
  if claimed == nil then
    claimed = redis.call('HGET', key('claims'), ref)
  end
  local holder, since = string.match(claimed or '', '^(%S+) (%d+)$')
  return holder == owner and tonumber(since) or nil
end

-- Whether the item can be sent by itself: pending, and not in a frozen message or a group.
local function is_sendable(item)
  return item and not final[item.st] and item.st ~= 'batch' and not item.y
end

-- Gives a member the outcome of its message; how: {outcome, n (attempts), h? (their notes), rr?,
-- retention}.
local function settle_member(ref, how)
  local rid, n, record, item = load_item(ref)
  if item then
    item.n = how.n
    item.h = how.h
    item.rr = math.max(item.rr or 0, how.rr or 0)
    end_item(rid, n, record, item, how)
  end
end

-- Keeps what a message is drawn from beside its events: of a summary its `about`, of a batch its
-- members in their order, as JSON.
local function keep_told(bid, text, retention)
  redis.call('SET', key('told', bid), text)
  redis.call('PEXPIREAT', key('told', bid), now + retention)
end
