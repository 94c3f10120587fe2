-- One account's ledger: its keys, refs, and the state changes of items. KEYS[1] is the account's
-- base. A ref names a piece of work: i:<record>:<index>:<sink> an item, b:<message>:<sink> a frozen
-- message, c:<sink> the batch that a sink collects, c:<group>:<sink> a group.
-- @include lib/clock.lua

local base = KEYS[1]
local final = { delivered = true, dead = true, suppressed = true, diverted = true, discarded = true }

-- Called some fifty times for each event: joining with `..` costs a fraction of table.concat.
local function key(kind, id, part)
  if part then
    return base .. ':' .. kind .. ':' .. id .. ':' .. part
  end
  return id and base .. ':' .. kind .. ':' .. id or base .. ':' .. kind
end

-- A script's unit of work. What it has read of records stays decoded. What it changes is gathered, and finish()
-- writes it, a command a key. It writes last what says that it is done: marks, cursor. So what fails half way is done
-- again. A script that reads a set after it has changed it calls write_sets() before.
local unit = {
  records = {}, -- id -> record, or false: there is none
  shown = {}, -- id -> what it shows, as JSON
  stored = {}, -- id -> the text that was there before
  changed = {}, -- ids of records to save: in order, and as a set
  texts = {}, -- keys and texts that do not expire, one after the other
  expiring = {}, -- arguments of SET for those that do
  payloads = {}, -- id -> when its payload expires (ms), 0: never
  filed = {}, -- records and their places in the index
  resting = {}, -- id -> its retention: it is filed in the index anew
  sets = {}, -- sorted set -> member -> score, or false: it leaves
  claims = {}, -- ref -> who holds it, or false: nobody
  at_end = {}, -- what an included file writes at the end
  counters = {},
  dated = {},
  endings = {},
}

local function bump(field, by)
  unit.counters[field] = (unit.counters[field] or 0) + by
end

-- Counts by day and hour: what came in, what ended and how, and how soon people were told.
local function tally(kind, of, word, state, reason)
  local field = kind .. '|' .. of .. (word and '|' .. word or '') .. (state and '|' .. state or '') .. (reason and '|' .. reason or '')
  unit.dated[field] = (unit.dated[field] or 0) + 1
end

local known_severities = { info = true, low = true, medium = true, high = true, critical = true }

local function severity_word(severity)
  return known_severities[severity] and severity or 'unknown'
end

-- Letters that the stream of endings has for outcomes (store/history/endings.ts reads them).
local outcome_letters = { delivered = 'd', dead = 'x', suppressed = 's', diverted = 'v' }

-- What tells one ending from another: a message is one, and so is what was suppressed for one reason. What
-- was sent singly is a message each.
local function ending_id(item, state, how)
  if not item.b and (state == 'delivered' or state == 'dead') then
    return how.rid .. how.n
  end
  return table.concat({ item.d, state, item.b or '', how.reason or '', how.rule or '', item.own and not item.b and 1 or 0 }, '|')
end

-- Adds an item to the ending that it shares with others of this script.
local function note_ending(item, state, how)
  local id = ending_id(item, state, how)
  local ending = unit.endings[id]
  if not ending then
    ending = { o = outcome_letters[state], d = item.d, b = item.b, r = how.reason, by = how.rule, own = true, part = how.part, items = {}, rk = 0, n = 0 }
    unit.endings[id] = ending
    unit.endings[#unit.endings + 1] = ending
  end
  ending.own = ending.own and item.own
  local wait = how.visible and math.max(0, now - how.visible)
  local place = #ending.items + 1
  if item.rk > ending.rk then
    ending.rk, ending.sv, ending.t = item.rk, item.sv, wait
    place = 1 -- lists show the title of the first
  elseif item.rk == ending.rk and wait then
    ending.t = math.max(ending.t or 0, wait)
  end
  ending.n = math.max(ending.n, item.n)
  table.insert(ending.items, place, how.rid .. '.' .. how.n)
end

-- Appends to a stream at the time of this script. An id before the last one is refused: the clock was set
-- back.
local function append(name, trim, fields)
  local args = { unpack(trim) }
  args[#args + 1] = string.format('%.0f-*', now)
  local place = #args
  for i, field in ipairs(fields) do
    args[place + i] = field
  end
  if type(redis.pcall('XADD', name, unpack(args))) == 'table' then
    args[place] = '*'
    redis.call('XADD', name, unpack(args))
  end
end

-- Appends an ending as a JSON list in the order that store/history/endings.ts reads, without what is empty at its
-- end. In fields of their own these would take more bytes, and three times as long to read.
local function write_ending(ending)
  local severity = known_severities[ending.sv] and ending.rk or ending.sv
  local flags = (ending.own and 'o' or '') .. (ending.part and 'p' or '')
  local list = { ending.o, ending.d, severity, table.concat(ending.items, ' '), ending.t or '', ending.n, flags, ending.b or '',
    ending.r or '', ending.by or '' }
  while list[#list] == '' do
    list[#list] = nil
  end
  append(key('ended'), {}, { 'e', cjson.encode(list) }) -- trim-records drops what is old
end

local hour_ms, day_ms = 3600000, 86400000

-- Calls a command with arguments of which each takes `width` places, in pieces that Lua can unpack; returns the
-- sum of its replies.
local most_arguments = 4000
local function call_all(command, name, arguments, width)
  local piece, sum = most_arguments - most_arguments % width, 0
  for from = 1, #arguments, piece do
    sum = sum + redis.call(command, name, unpack(arguments, from, math.min(#arguments, from + piece - 1)))
  end
  return sum
end

-- Puts a member into a sorted set, or takes it out (score: false).
local function put(name, member, score)
  local set = unit.sets[name]
  if not set then
    set = {}
    unit.sets[name] = set
  end
  set[member] = score
end

-- Puts a member into a sorted set unless it is there.
local function put_first(name, member, score)
  local set = unit.sets[name]
  if not (set and set[member]) then
    local known = not (set and set[member] == false) and redis.call('ZSCORE', name, member)
    put(name, member, known or score)
  end
end

-- Stores a text that does not expire.
local function store(name, text)
  unit.texts[#unit.texts + 1], unit.texts[#unit.texts + 2] = name, text
end

local function write_sets()
  for name, set in pairs(unit.sets) do
    local added, left = {}, {}
    for member, score in pairs(set) do
      if score then
        added[#added + 1], added[#added + 2] = score, member
      else
        left[#left + 1] = member
      end
    end
    call_all('ZADD', name, added, 2)
    call_all('ZREM', name, left, 1)
  end
  unit.sets = {}
end

-- A record is two lines of JSON: what becomes of it, and what it shows. The latter stays as it was written unless the
-- event is shown again or its full event names it anew. So most scripts neither decode nor encode the second. Of the
-- first only scripts read g, how often it was shown; of an item v, since when it was visible (ms), until it is told.
local function read_record(rid, text)
  local cut = text and string.find(text, '\n', 1, true)
  unit.records[rid] = text and cjson.decode(string.sub(text, 1, cut - 1)) or false
  unit.shown[rid] = text and string.sub(text, cut + 1)
  unit.stored[rid] = text
end

local function load_record(rid)
  if unit.records[rid] == nil then
    read_record(rid, redis.call('GET', key('rec', rid)))
  end
  return unit.records[rid] or nil
end

-- What the record shows: {u (uid), ty (type), about (what lists show of it), f [{f (feed), sv, l (labels), w
-- (decisions), ur? (fields not read), v (visible since, ms), at? (when this feed showed it, ms; the first:
-- when the record was made)}]}.
local function shown_of(rid)
  return cjson.decode(unit.shown[rid])
end

-- Loads the records that are about to be looked at, {rid} each.
local function load_records(list)
  local names = {}
  for i, one in ipairs(list) do
    names[i] = key('rec', one.rid)
  end
  local texts = #names > 0 and redis.call('MGET', unpack(names)) or {}
  for i, one in ipairs(list) do
    read_record(one.rid, texts[i])
  end
end

-- Loads the item that a ref names; returns its record's id, its index, the record, and the item.
local function load_item(ref)
  local rid, index = string.match(ref, '^i:([^:]+):(%d+):')
  local n = tonumber(index)
  local record = rid and load_record(rid)
  return rid, n, record, record and record.i[n + 1]
end

local critical_rank = 5
local under_way = { queued = true, group = true, batch = true, sending = true, retrying = true }

-- Notes since when each sink owes this record's critical event; one that is held or listed in a
-- digest is not owed yet.
local function note_owed(rid, record)
  local since = {}
  for _, item in ipairs(record.i) do
    if item.rk == critical_rank then
      local known = since[item.k] or math.huge
      since[item.k] = under_way[item.st] and math.min(known, item.c) or known
    end
  end
  for sink, at in pairs(since) do
    put(key('owed', sink), rid, at < math.huge and at)
  end
end

local function save_record(rid, record)
  unit.records[rid] = record
  if not unit.changed[rid] then
    unit.changed[rid] = true
    unit.changed[#unit.changed + 1] = rid
  end
end

local function item_ref(rid, n, item)
  return 'i:' .. rid .. ':' .. n .. ':' .. item.k
end

-- The only place where an item changes state: the counters of its sink change with it. `how`, of a final
-- state: {rid, n, reason? (why it ends undelivered), rule?, visible? (ms, of what is told for the first
-- time), part? (other items of its message are settled by other runs)}.
local function move(item, state, how)
  if item.st and not final[item.st] then
    bump('s|' .. item.k .. '|pending|' .. item.st, -1)
  end
  if final[state] then
    bump('s|' .. item.k .. '|' .. state, 1)
    tally(item.own and 'own' or 'ended', item.d, severity_word(item.sv), state, how.reason or '')
    note_ending(item, state, how)
    item.e = now
  else
    bump('s|' .. item.k .. '|pending|' .. state, 1)
    item.e = nil
  end
  item.st = state
  item.place = nil -- the group that an item joins once its wait for the full event is over
end

-- Whether an attempt with this event has begun or begins with what was handed out, or it is in a frozen
-- message. Its payload must not change then: every attempt sends the same body.
local function is_on_its_way(rid, record)
  for m, item in ipairs(record.i) do
    if item.st == 'queued' and item.n == 0 then
      local held = redis.call('HMGET', key('claims'), item_ref(rid, m - 1, item), 'c:' .. item.k)
      if held[1] or held[2] then
        return true
      end
    end
    if not final[item.st] and (item.n > 0 or item.st == 'batch') then
      return true
    end
  end
  return false
end

local untold = { suppressed = true, dead = true, discarded = true }

-- The item by which a destination has an event at least as severe, and its index: one that was or will be
-- told, else one that went elsewhere, else one that never will. `with_shadows`: a trial counts too.
local function find_item(record, destination, rank, with_shadows)
  local found, at
  for n, item in ipairs(record.i) do
    local counts = item.d == destination and item.rk >= rank and (with_shadows or item.why ~= 'shadow')
    if counts and (not found or untold[found.st] or (found.st == 'diverted' and not untold[item.st])) then
      found, at = item, n - 1
    end
  end
  return found, at
end

local function sink_of(ref)
  return string.match(ref, '^.*:(.*)$')
end

local function due_of(ref)
  return key('due', sink_of(ref))
end

local default_rank = 4 -- for a sink's batch, and for what was stored without a rank

-- Score in a sink's ready set, the order of claims: the highest rank first, then the longest due.
local function ready_score(rank, at)
  return (10 - rank) * 1e13 + at
end

-- How many refs of a due set stand up to a place, "<ms> <ref>" or "<ms>". Refs of one millisecond are
-- sorted by name; the one of the place may have left.
local function count_up_to(due, place)
  local ms, ref = string.match(place, '^(%d+) ?(.*)$')
  local start, behind = redis.call('ZCOUNT', due, '-inf', '(' .. ms), redis.call('ZCOUNT', due, '-inf', ms)
  while start < behind do
    local middle = math.floor((start + behind) / 2)
    if ref ~= '' and redis.call('ZRANGE', due, middle, middle)[1] > ref then
      behind = middle
    else
      start = middle + 1
    end
  end
  return start
end

-- Makes a ref due at `at` (ms) and drops any claim on it. The ready set holds the refs that are due
-- and not claimed, so that the worst can be found.
local function wake(ref, at, rank)
  local sink = sink_of(ref)
  put(key('due', sink), ref, at)
  put(key('ready', sink), ref, at <= now and ready_score(rank or default_rank, at))
  unit.claims[ref] = false
end

local function unwake(ref)
  local sink = sink_of(ref)
  put(key('due', sink), ref, false)
  put(key('ready', sink), ref, false)
  unit.claims[ref] = false
end

-- Fraction of the score that keeps items in order which join a group or batch in one millisecond.
local collected = tonumber(clock[2]) % 1000

local function collect(id, ref)
  collected = collected + 1
  put(key('collect', id), ref, string.format('%.3f', now + collected / 1000))
end

-- Takes a ref out of a collection; returns whether it was there.
local function uncollect(id, ref)
  local name = key('collect', id)
  local score = unit.sets[name] and unit.sets[name][ref]
  if score == nil then
    return redis.call('ZREM', name, ref) == 1
  end
  put(name, ref, false)
  return score ~= false
end

-- A sink's batch that is empty is no longer due.
local function end_empty_batch(sink)
  write_sets()
  if redis.call('EXISTS', key('collect', sink)) == 0 then
    unwake('c:' .. sink)
  end
end

-- Removes an item from its group or its sink's batch.
local function leave_collection(ref, item)
  if uncollect(item.y or item.k, ref) and not item.y then
    end_empty_batch(item.k)
  end
end

-- An item without a state was created by this very commit and is not due anywhere yet.
local function leave_due(rid, n, item)
  if item.st then
    unwake(item_ref(rid, n, item))
  end
end

local longest_backlog = 15 * 60000 -- the first poll's summary goes out by then, even while it lasts
local state_in = { group = 'group', backlog = 'group', digest = 'digest', held = 'held' }

-- Writes a group's settings, and its opening time if it is new; place: {id, kind, wait (ms), at?
-- (ms), about (JSON)}.
local function open_group(place)
  local name = key('group', place.id)
  redis.call('HSET', name, 'kind', place.kind, 'about', place.about, 'wait', place.wait, 'at', place.at or '')
  redis.call('HSETNX', name, 'opened', now)
end

-- `how` is a flag of ZADD: NX sets a timer only where there is none, LT moves one only to an
-- earlier time.
local function set_timer(id, sink, at, how)
  redis.call('ZADD', key('timers'), how, at, 'c:' .. id .. ':' .. sink)
end

-- Adds an item to the group item.y and sets the timer at which the group is flushed as one message.
local function join_group(rid, n, item)
  local stored = redis.call('HMGET', key('group', item.y), 'kind', 'wait', 'at', 'opened')
  local kind, wait, timer = stored[1], tonumber(stored[2]), 'c:' .. item.y .. ':' .. item.k
  leave_due(rid, n, item)
  move(item, state_in[kind])
  item.at = nil
  item.why = nil
  collect(item.y, item_ref(rid, n, item))
  local is_first = not redis.call('ZSCORE', key('timers'), timer)
  if kind == 'backlog' and item.ug then
    set_timer(item.y, item.k, now + wait, 'LT') -- later members do not put an urgent one off
  elseif kind == 'backlog' then
    redis.call('ZADD', key('timers'), math.min(now + wait, tonumber(stored[4]) + longest_backlog), timer)
  elseif kind == 'held' then
    set_timer(item.y, item.k, tonumber(stored[3]), 'LT')
  elseif kind == 'digest' then
    set_timer(item.y, item.k, tonumber(stored[3]), 'NX') -- an existing timer ends the current window
  elseif is_first or (kind == 'group' and item.ug) then
    set_timer(item.y, item.k, now + wait, 'LT')
  end
end

-- Queues an item: in its group, in its sink's batch (batch_wait in ms), or by itself.
-- Returns group | collect | single.
local function enqueue(rid, n, item, batch_wait)
  if item.y and redis.call('HEXISTS', key('group', item.y), 'kind') == 1 then
    join_group(rid, n, item)
    return 'group'
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
  put_first(key('due', item.k), 'c:' .. item.k, now + batch_wait)
  return 'collect'
end

-- Reasons whose rules are counted: those of a configuration, and silences.
local by_rule = { silence = true, inhibition = true, mute = true, shadow = true }

-- Counts what a rule suppresses or holds. The rule of a shadow is the route that is in it.
local function tally_rule(item, reason, rule)
  if by_rule[reason] and not item.own then
    tally('rule', reason, rule or item.q[1] or '', severity_word(item.sv))
  end
end

-- Holds an item until why.at (ms), in the group why.place. One that the same rule holds on is counted once.
local function hold(rid, n, item, why)
  if item.st ~= 'held' or item.why ~= why.reason or item.by ~= why.rule then
    tally_rule(item, why.reason, why.rule)
  end
  item.y = why.place.id
  open_group(why.place)
  join_group(rid, n, item)
  item.why = why.reason
  item.by = why.rule
  item.at = why.at
end

local function suppress(rid, n, item, reason, rule)
  unwake(item_ref(rid, n, item))
  move(item, 'suppressed', { rid = rid, n = n, reason = reason, rule = rule })
  tally_rule(item, reason, rule)
  item.at = nil
  item.y = nil
  item.why = reason
  item.by = rule
end

-- A record's score in its account's index: when it was settled (ms) or, negative, since when it has
-- been pending. An event without items was settled when it was taken in.
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

-- Saves a record, and files it in the index by its items: it expires only once every item is final. Every change
-- that makes items pending or final ends with this call.
local function rest(rid, record, retention)
  save_record(rid, record)
  unit.resting[rid] = retention
end

-- Holds or suppresses an item, as its verdict {a, reason, rule, at?, place?} says.
local function suppress_or_hold(rid, n, record, item, verdict, retention)
  if verdict.a == 'hold' then
    hold(rid, n, item, verdict)
  else
    suppress(rid, n, item, verdict.reason, verdict.rule)
  end
  rest(rid, record, retention)
end

-- Upper bounds in seconds of the time from visible to told; more than the last is 'more'.
local delays = { 1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400 }

-- Counts how long an event was visible before its destination got it for the first time.
local function tally_delay(item)
  local visible = item.v
  if not visible or item.own then
    return
  end
  item.v = nil
  for _, bound in ipairs(delays) do
    if now - visible <= bound * 1000 then
      return tally('told', item.d, severity_word(item.sv), bound)
    end
  end
  tally('told', item.d, severity_word(item.sv), 'more')
end

-- Makes an item final by the outcome of its attempt or message; how: {outcome, retention, part?}.
local function end_item(rid, n, record, item, how)
  if final[item.st] then
    return -- an attempt from before the batch has delivered it meanwhile
  end
  local own = item_ref(rid, n, item)
  if item.st ~= 'batch' then -- freezing has removed a message's members from all of these
    unwake(own)
    if item.st ~= 'sending' then
      leave_collection(own, item) -- an attempt that answers late may find it in a group or batch
    end
  end
  local last = item.h and item.h[#item.h]
  move(item, how.outcome, {
    rid = rid,
    n = n,
    reason = how.outcome == 'dead' and last and last.r or nil,
    visible = how.outcome == 'delivered' and item.v or nil,
    part = how.part,
  })
  if how.outcome == 'delivered' then
    tally_delay(item)
  end
  item.why = nil
  item.y = nil
  if how.outcome == 'dead' then
    redis.call('ZADD', key('dead', item.k), now, own)
  end
  rest(rid, record, how.retention)
end

-- Notes an attempt; the last five notes are kept.
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

-- The end of every script that includes this file: scripts.ts calls finish().

-- Gathers what becomes of a record: its text, its place in the index, whom it is owed to.
local function encode_record(rid)
  local record, retention = unit.records[rid], unit.resting[rid]
  local name, text = key('rec', rid), cjson.encode(record) .. '\n' .. unit.shown[rid]
  note_owed(rid, record)
  local at = place_of(record)
  if not retention then
    if at < 0 then
      store(name, text) -- what is pending does not expire
    else
      unit.expiring[#unit.expiring + 1] = { name, text, 'KEEPTTL' }
    end
    return
  end
  unit.filed[#unit.filed + 1], unit.filed[#unit.filed + 2] = at, rid
  if at >= 0 then
    unit.expiring[#unit.expiring + 1] = { name, text, 'PXAT', at + retention.history }
    unit.payloads[rid] = at + retention.payload
  else
    store(name, text)
    unit.payloads[rid] = unit.stored[rid] and 0 or nil
  end
end

local function write_claims()
  local held, free = {}, {}
  for ref, holder in pairs(unit.claims) do
    if holder then
      held[#held + 1], held[#held + 2] = ref, holder
    else
      free[#free + 1] = ref
    end
  end
  call_all('HSET', key('claims'), held, 2)
  call_all('HDEL', key('claims'), free, 1)
end

local function write_counts(name, counts)
  for field, by in pairs(counts) do
    redis.call('HINCRBY', name, field, by)
  end
end

local function write_dated()
  if not next(unit.dated) then
    return
  end
  local day, hour = math.floor(now / day_ms), key('hour', math.floor(now / hour_ms))
  local first = redis.call('HGET', key('counters'), 'first_day')
  if not first or tonumber(first) > day then
    redis.call('HSET', key('counters'), 'first_day', day)
  end
  write_counts(key('day', day), unit.dated) -- trim-records drops it
  write_counts(hour, unit.dated)
  redis.call('PEXPIRE', hour, 2 * day_ms)
end

local function write_texts()
  if #unit.texts > 0 then
    redis.call('MSET', unpack(unit.texts))
  end
  for _, arguments in ipairs(unit.expiring) do
    redis.call('SET', unpack(arguments))
  end
  for rid, at in pairs(unit.payloads) do
    if at > 0 then
      redis.call('PEXPIREAT', key('pay', rid), at)
    else
      redis.call('PERSIST', key('pay', rid))
    end
  end
end

-- Sets come before records: a ref without its item is dropped when it is claimed, an item without its ref would
-- wait for ever.
local function finish()
  for _, rid in ipairs(unit.changed) do
    encode_record(rid)
  end
  local added = call_all('ZADD', key('records'), unit.filed, 2)
  if added > 0 then
    bump('records', added)
  end
  write_sets()
  write_claims()
  write_texts()
  write_counts(key('counters'), unit.counters)
  for _, ending in ipairs(unit.endings) do
    write_ending(ending)
  end
  write_dated()
  for _, write in ipairs(unit.at_end) do
    write()
  end
end
