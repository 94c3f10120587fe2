-- @include lib/clock.lua

local base = KEYS[1]
local final = { delivered = true, dead = true, suppressed = true, diverted = true, discarded = true }

-- Some fifty names are made for an event: a plain join costs a fraction of table.concat.
local function key(kind, id, part)
  if part then
    return base .. ':' .. kind .. ':' .. id .. ':' .. part
  end
  return id and base .. ':' .. kind .. ':' .. id or base .. ':' .. kind
end

local function bump(field, by)
  redis.call('HINCRBY', key('counters'), field, by)
end

local function load_record(rid)
  local text = redis.call('GET', key('rec', rid))
  return text and cjson.decode(text)
end

local function save_record(rid, record)
  redis.call('SET', key('rec', rid), cjson.encode(record), 'KEEPTTL')
end

local function item_ref(rid, n, item)
  return 'i:' .. rid .. ':' .. n .. ':' .. item.k
end

-- The only place where an item changes state: the counters of its sink change with it.
local function move(item, state)
  if item.st and not final[item.st] then
    bump('s|' .. item.k .. '|pending|' .. item.st, -1)
  end
  if final[state] then
    bump('s|' .. item.k .. '|' .. state, 1)
    item.e = now
  else
    bump('s|' .. item.k .. '|pending|' .. state, 1)
    item.e = nil
  end
  item.st = state
end

-- Whether a message with this event is being sent: it has the same body on every attempt.
local function is_on_its_way(record)
  for _, item in ipairs(record.i) do
    if not final[item.st] and (item.n > 0 or item.st == 'batch') then
      return true
    end
  end
  return false
end

-- Every ref ends with its sink.
local function sink_of(ref)
  return string.match(ref, '[^:]+$')
end

local function due_of(ref)
  return key('due', sink_of(ref))
end

local default_rank = 4 -- of what holds several items, and of what stored none

-- The order in which what is due is claimed: the worst first, then the longest waiting.
local function ready_score(rank, at)
  return (10 - rank) * 1e13 + at
end

-- What is due stands in the ready set, too, so that the worst is found; what is claimed has left it, and is due
-- again when its lease ends.
local function wake(ref, at, rank)
  redis.call('ZADD', due_of(ref), at, ref)
  redis.call('HDEL', key('claims'), ref)
  if at <= now then
    redis.call('ZADD', key('ready', sink_of(ref)), ready_score(rank or default_rank, at), ref)
  else
    redis.call('ZREM', key('ready', sink_of(ref)), ref)
  end
end

local function unwake_all(sink, refs)
  redis.call('ZREM', key('due', sink), unpack(refs))
  redis.call('ZREM', key('ready', sink), unpack(refs))
  redis.call('HDEL', key('claims'), unpack(refs))
end

local function unwake(ref)
  unwake_all(sink_of(ref), { ref })
end

-- Keeps the order of what is collected within one millisecond.
local collected = tonumber(clock[2]) % 1000

local function collect(id, ref)
  collected = collected + 1
  redis.call('ZADD', key('collect', id), string.format('%.3f', now + collected / 1000), ref)
end

-- Out of where it waits for company; a sink's batch of which nothing is left is not due any more.
local function leave_collection(ref, item)
  local was_there = redis.call('ZREM', key('collect', item.y or item.k), ref) == 1
  if was_there and not item.y and redis.call('EXISTS', key('collect', item.k)) == 0 then
    unwake('c:' .. item.k)
  end
end

-- Of an item that a commit has just made nothing is due.
local function leave_due(rid, n, item)
  if item.st then
    unwake(item_ref(rid, n, item))
  end
end

local longest_backlog = 15 * 60000 -- what a first poll finds is told by then, however long it lasts
local state_in = { group = 'group', backlog = 'group', digest = 'digest', held = 'held' }

-- What a collection is for is written when its first member comes; place: {id, kind, wait, at?, about}.
local function open_gathering(place)
  local name = key('gather', place.id)
  redis.call('HSET', name, 'kind', place.kind, 'about', place.about, 'wait', place.wait, 'at', place.at or '')
  redis.call('HSETNX', name, 'opened', now)
end

local function set_timer(id, sink, at, how)
  redis.call('ZADD', key('timers'), how, at, 'c:' .. id .. ':' .. sink)
end

-- Puts an item among the others of its collection, and sets the timer that makes them one message.
local function gather(rid, n, item)
  local stored = redis.call('HMGET', key('gather', item.y), 'kind', 'wait', 'at', 'opened')
  local kind, wait, timer = stored[1], tonumber(stored[2]), 'c:' .. item.y .. ':' .. item.k
  leave_due(rid, n, item)
  move(item, state_in[kind])
  item.at = nil
  item.why = nil
  collect(item.y, item_ref(rid, n, item))
  local is_first = not redis.call('ZSCORE', key('timers'), timer)
  if kind == 'backlog' and item.ug then
    set_timer(item.y, item.k, now + wait, 'LT') -- told within seconds, however long the reading lasts
  elseif kind == 'backlog' then
    redis.call('ZADD', key('timers'), math.min(now + wait, tonumber(stored[4]) + longest_backlog), timer)
  elseif kind == 'held' then
    set_timer(item.y, item.k, tonumber(stored[3]), 'LT')
  elseif kind == 'digest' then
    set_timer(item.y, item.k, tonumber(stored[3]), 'NX') -- one that is set is for the coming window
  elseif is_first or (kind == 'group' and item.ug) then
    set_timer(item.y, item.k, now + wait, 'LT')
  end
end

-- Sends an item on its way: with its like, into its sink's batch (batch_wait in ms), or alone.
local function enqueue(rid, n, item, batch_wait)
  if item.y and redis.call('HEXISTS', key('gather', item.y), 'kind') == 1 then
    gather(rid, n, item)
    return 'gather'
  end
  if batch_wait then
    leave_due(rid, n, item)
  end
  move(item, 'queued')
  item.y = nil
  item.at = nil
  item.why = nil
  if not batch_wait then
    wake(item_ref(rid, n, item), now, item.rk)
    return 'single'
  end
  collect(item.k, item_ref(rid, n, item))
  redis.call('ZADD', due_of('c:' .. item.k), 'NX', now + batch_wait, 'c:' .. item.k)
  return 'collect'
end

-- Keeps an item back until a time: with its like in a collection (place), or by itself.
local function hold(rid, n, item, why)
  local ref = item_ref(rid, n, item)
  if why.place then
    item.y = why.place.id
    open_gathering(why.place)
    gather(rid, n, item)
  else
    move(item, 'held')
    item.y = nil
    wake(ref, why.at, item.rk)
  end
  item.why = why.reason
  item.by = why.rule
  item.at = why.at
end

local function suppress(rid, n, item, reason, rule)
  unwake(item_ref(rid, n, item))
  move(item, 'suppressed')
  item.at = nil
  item.y = nil
  item.why = reason
  item.by = rule
end

-- Where a record stands in its account's index: when it was settled (ms) or, negative, since when something of it
-- has been pending. An event without items was settled when it came.
local function place_of(record)
  local settled, pending
  for _, item in ipairs(record.i) do
    if not final[item.st] then
      pending = math.min(pending or item.c, item.c)
    end
    settled = math.max(settled or 0, item.e or 0)
  end
  return pending and -pending or settled or record.t
end

-- Files a record in the index; it expires once every item is final, and not before. Whatever makes items pending or
-- final ends with this. `is_new` records are counted by their maker, others that the index did not have here.
local function rest(rid, record, retention, is_new)
  local at = place_of(record)
  local is_added = redis.call('ZADD', key('records'), at, rid) == 1
  if is_added ~= (is_new or false) then
    bump('records', is_added and 1 or -1)
  end
  if at < 0 then
    redis.call('PERSIST', key('rec', rid))
    redis.call('PERSIST', key('pay', rid))
    return
  end
  redis.call('PEXPIREAT', key('rec', rid), at + retention.story)
  redis.call('PEXPIREAT', key('pay', rid), at + retention.payload)
end

-- Makes an item final by what came of its message; how: {outcome, retention}.
local function end_item(rid, n, record, item, how)
  if final[item.st] then
    return -- delivered meanwhile by an attempt from before the batch
  end
  local own = item_ref(rid, n, item)
  if item.st ~= 'batch' then -- what is in a message has left all of these
    unwake(own)
    leave_collection(own, item) -- where it was sent by itself all the same
    redis.call('SREM', key('orphans', item.k), own)
  end
  move(item, how.outcome)
  item.why = nil
  item.y = nil
  if how.outcome == 'dead' then
    redis.call('ZADD', key('dead', item.k), now, own)
  end
  save_record(rid, record)
  rest(rid, record, how.retention)
end

-- Keeps the last five attempts and the count of all.
local function remember(holder, entry)
  local past = holder.h or {}
  past[#past + 1] = entry
  if #past > 5 then
    table.remove(past, 1)
  end
  holder.h = past
end

local function split_ref(ref)
  local parts = {}
  for part in string.gmatch(ref, '[^:]+') do
    parts[#parts + 1] = part
  end
  return parts
end
