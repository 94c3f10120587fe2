-- Takes in one page, or a piece of one. Fingerprints, records, items, counters and, with the last piece, the cursor
-- change together or not at all. A commit id that was seen before gets the stored reply.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: feed, of (prefix of the fields: '' the tail's scan | 'recent_', 'long_', 'whole_'
--          a rescan's), seq? (the fence: the sequence that was read before the fetch; none:
--          nothing was fetched), cid (commit id),
--          gen (generation), fp (the scan's fingerprint), ends (JSON, what is kept of a scan read to
--          its end), at_end [field, value, …] (set when a rescan was read to its end), horizon (ms),
--          retention {history, payload} (ms), detail_wait (ms), requested (ms), limit? (ms: what
--          has a later date is dated ahead of now), beyond (bool: a page of a tail beyond now),
--          caught_up (bool), known_ends (bool: a page whose items are all known is the end),
--          backfill (bool), newest (ms, 0: none), late_before?
--          (ms), last (bool: of the page's pieces), shown and unread (items of the whole page, and
--          how many of them could not be read), before? (counts of the pieces before this one),
--          events [{rid, sv and rk (severity and its rank), seen {m, b} (fingerprint), base? {m, b}
--          (fingerprint as baseline; only below the start bound), bl? (baseline), ca? (created, ms),
--          v (visible since, ms), cl? (ignored | remediated), ro [route] (that take it, or have one
--          below that does), nr? (no readable severity), of [term] (what it concerns), dt? (full
--          event wanted), pr? {id, u (uid), src, ms} (credential pair), ih [{k, ms}] (what it
--          inhibits), items [{d, k, q (destination, sink, routes), m, b
--          (fingerprint), bw? (batch wait, ms), sh? (shadow), g? {id, kind, wait, at?, about,
--          urgent} (group), li? (digest that lists it as sent)}]}], bad [{rid, m, b, uid?,
--          problem}]
-- ARGV[2]  the scan after this page, stored as it is
-- ARGV[3…] of each event its payload and what it shows (lib/ledger.lua), then the raw text of each bad
--          item
-- Returns  JSON {status: committed | stale (another sequence) | superseded (a newer generation),
--          counts, at (ms), made? [{ref, k, sv, rk, kind, why?}], fresh? [positions of the new
--          events], ended (bool)}
-- @include lib/ledger.lua
-- @include lib/marks.lua
-- @include lib/terms.lua

local ask = cjson.decode(ARGV[1])
local feed = key('feed', ask.feed)
local function of(field)
  return ask.of .. field
end
local state = redis.call('HMGET', feed, of('seq'), of('cid'), of('result'), of('gen'), of('fp'))

if state[2] == ask.cid then
  return state[3]
end
if tonumber(state[4] or '0') > ask.gen and state[5] ~= ask.fp then
  return cjson.encode({ status = 'superseded' })
end
local sequence = tonumber(state[1] or '0')
if ask.seq and ask.seq ~= sequence then
  return cjson.encode({ status = 'stale' })
end

local weeks = open_weeks(ask.horizon)
local counts = { fetched = #ask.events + #ask.bad, new = 0, duplicate = 0, quarantined = 0, baseline = 0, late = 0, ahead = 0, raised = 0 }
local made = {}
local fresh = {}
local has_quarantined = redis.call('EXISTS', key('quarantine')) == 1

local function tell_made(rid, n, item, kind)
  local why = item.st == 'suppressed' and item.why or nil
  made[#made + 1] = { ref = item_ref(rid, n, item), k = item.k, sv = item.sv, rk = item.rk, kind = kind, why = why }
end

-- What is known of this pair of login and secret: the record that showed it first (r, u), in how many records it was
-- seen (n), the first sources (s). Also, by destination, the record that carried it (d). Returns nil for an event
-- without a pair.
local function known_pair(event, is_new_record)
  if not event.pr then
    return nil
  end
  local name = key('pair', event.pr.id)
  local text = redis.call('GET', name)
  local pair = text and cjson.decode(text) or { r = event.rid, u = event.pr.u, n = 0, s = {}, d = {} }
  if is_new_record then
    pair.n = pair.n + 1
    if #pair.s < 20 then
      pair.s[#pair.s + 1] = event.pr.src
    end
  end
  return pair, name
end

-- Notes in another record that showed a pair first in how many more records it was seen.
local function tell_first(pair, event)
  local first = pair.r ~= event.rid and load_record(pair.r)
  if first then
    first.ag = { n = pair.n - 1, s = pair.s }
    save_record(pair.r, first)
  end
end

local listed_sinks = {}

local function new_item(event, record, candidate)
  local item = { d = candidate.d, k = candidate.k, q = candidate.q, rk = event.rk, sv = event.sv, g = record.g, v = event.v, c = now, n = 0 }
  item.rf = event.raised_from
  item.own = ask.feed == '_tocsin' or nil -- counted apart: nothing that the API showed
  record.i[#record.i + 1] = item
  bump('s|' .. item.k .. '|created', 1)
  if not listed_sinks[item.k] then
    redis.call('SADD', key('sinks'), item.k)
    listed_sinks[item.k] = true
  end
  return item, #record.i - 1
end

local function send_on(event, item, n, candidate)
  local group = candidate.g
  if group then
    item.y = group.id
    item.ug = group.urgent or nil
  end
  -- the summary of a backlog shows titles only, so it does not wait for full events
  if event.dt and not (group and group.kind == 'backlog') then
    move(item, 'held')
    item.why = 'detail'
    item.at = now + ask.detail_wait
    item.place = group -- the group may end meanwhile
    wake(item_ref(event.rid, n, item), item.at)
    return 'detail'
  end
  if group then
    open_group(group)
  end
  return enqueue(event.rid, n, item, candidate.bw)
end

-- Whether the destination got, or will get, the pair from another record that is at least as
-- severe.
local function has_pair(pair, event, destination)
  local rid = pair and pair.d[destination]
  local other = rid and rid ~= event.rid and load_record(rid)
  local item = other and find_item(other, destination, event.rk)
  return item and not untold[item.st]
end

local function add_item(event, record, candidate, pair)
  local item, n = new_item(event, record, candidate)
  local reason = candidate.sh and 'shadow' or nil
  if not reason and has_pair(pair, event, item.d) then
    reason = 'seen_again'
  end
  if reason then
    suppress(event.rid, n, item, reason, reason == 'seen_again' and pair.u or nil)
    tell_made(event.rid, n, item, 'suppressed')
    return
  end
  if pair then
    pair.d[item.d] = event.rid
  end
  local kind = send_on(event, item, n, candidate)
  if candidate.li then
    redis.call('ZADD', key('listed', candidate.li), now, item_ref(event.rid, n, item))
  end
  tell_made(event.rid, n, item, kind)
end

-- Remembers an event that inhibits others, for its rule's window. The last three suffice: an event
-- does not inhibit itself.
local function remember_inhibitor(event)
  for _, source in ipairs(event.ih) do
    local name = key('inhibit', source.k)
    redis.call('ZADD', name, now, event.rid)
    redis.call('ZREMRANGEBYRANK', name, 0, -4)
    redis.call('PEXPIRE', name, source.ms)
  end
end

local function keep_payload(event, record, payload, how)
  local name = key('pay', event.rid)
  local is_replaced = how.is_new or (how.changed and not is_on_its_way(event.rid, record))
  if is_replaced or redis.call('EXISTS', name) == 0 then
    store(name, payload)
  end
  rest(event.rid, record, ask.retention)
end

-- An event that came back more severe while its item waits in a group is sent once, with the new severity. The older
-- item is suppressed.
local function supersede(event, record, destination)
  for i, item in ipairs(record.i) do
    if item.d == destination and item.y and not final[item.st] then
      uncollect(item.y, item_ref(event.rid, i - 1, item))
      suppress(event.rid, i - 1, item, 'superseded', event.sv)
      tell_made(event.rid, i - 1, item, 'superseded')
    end
  end
end

local function add_items(event, record)
  local pair, pair_name = known_pair(event, record.g == 1)
  for _, candidate in ipairs(event.items) do
    if not find_item(record, candidate.d, event.rk, candidate.sh) then
      if candidate.sh then
        add_item(event, record, candidate)
      elseif not is_marked(weeks, candidate, ask.horizon) then
        write_mark(weeks, candidate, ask.horizon)
        supersede(event, record, candidate.d)
        add_item(event, record, candidate, pair)
      end
    end
  end
  if pair then
    redis.call('SET', pair_name, cjson.encode(pair), 'PX', event.pr.ms)
    tell_first(pair, event)
  end
end

-- Notes that people closed the event upstream. Absence proves nothing, so it never reopens.
local function note_closed(event, record)
  if record and event.cl and record.cl ~= event.cl then
    record.cl = event.cl
    save_record(event.rid, record)
  end
end

local function note_ahead(event)
  if not ask.limit or (event.ca or 0) <= ask.limit then
    return
  end
  counts.ahead = counts.ahead + 1
  redis.call('HSET', feed, 'ahead_at', now)
  if event.ca > tonumber(redis.call('HGET', feed, 'ahead') or '0') then
    redis.call('HSET', feed, 'ahead', event.ca)
  end
end

-- Notes a new record for what it concerns.
local trimmed
local function note_terms(event, record)
  local history = ask.retention.history
  trimmed = trimmed or tonumber(redis.call('GET', key('trimmed')) or '0')
  for _, term in ipairs(event.of) do
    if term.k == 'identifier' then
      note_identifier(event.rid, term, math.max(now - history, trimmed), history)
    else
      note_victim(event.rid, record, term, history)
    end
  end
end

-- Adds to what a record shows that a feed shows it, too, or as more severe. Returns the routes that took it before.
local function show_again(event, text, raised)
  local shown, again, known = shown_of(event.rid), cjson.decode(text), {}
  for _, sight in ipairs(shown.f) do
    for _, decision in ipairs(sight.w) do
      for _, route in ipairs(decision.path) do
        known[route] = true
      end
    end
  end
  shown.about = raised and again.about or shown.about
  local sight = again.f[1]
  sight.at, sight.v = now, event.v
  shown.f[#shown.f + 1] = sight
  unit.shown[event.rid] = cjson.encode(shown)
  return known
end

-- Counts the event for each route that takes it, or has one below that does, for the first time.
local function tally_routes(event, known)
  for _, route in ipairs(event.ro) do
    if not known[route] then
      tally('route', route, severity_word(event.sv))
    end
  end
end

-- Takes in one event. One that the feed showed before is a duplicate; if it came back more severe,
-- it is routed again. A baseline event stays baseline: it existed before the feed began.
local function take_in(place, event, payload, shown_text)
  local record = load_record(event.rid)
  local is_seen = is_marked(weeks, event.seen, ask.horizon)
  if not is_seen and event.base and is_marked(weeks, event.base, ask.horizon) then
    is_seen, event.bl = true, true
  end
  -- a known event whose severity cannot be read any more did not become more severe
  local raised = record and event.rk > record.rk and not (is_seen and event.nr)
  if is_seen then
    counts.duplicate = counts.duplicate + 1
    if not raised or event.bl then
      return note_closed(event, record)
    end
  else
    write_mark(weeks, event.bl and event.base or event.seen, ask.horizon)
    if event.bl then
      counts.baseline = counts.baseline + 1
      return
    end
    counts.new = counts.new + 1
    if ask.feed ~= '_tocsin' then
      tally('new', ask.feed, severity_word(event.sv))
    end
    if ask.late_before and event.ca and event.ca < ask.late_before then
      counts.late = counts.late + 1
    end
    note_ahead(event)
    fresh[#fresh + 1] = place
  end
  local is_new = not record
  if is_new and ask.feed ~= '_tocsin' then
    tally('event', severity_word(event.sv))
  end
  record = record or { rk = event.rk, sv = event.sv, t = now, g = 0, i = {} }
  if raised then
    counts.raised = counts.raised + 1
    event.raised_from = record.sv
    event.v = ask.requested
    record.rk = event.rk
    record.sv = event.sv
  end
  record.cl = event.cl or record.cl
  record.g = record.g + 1
  if is_new then
    unit.shown[event.rid] = shown_text
    tally_routes(event, {})
    note_terms(event, record)
  else
    tally_routes(event, show_again(event, shown_text, raised))
  end
  add_items(event, record)
  remember_inhibitor(event)
  keep_payload(event, record, payload, { changed = raised, is_new = is_new })
end

-- Removes an entry of the quarantine. Its item's fingerprint stays, so it is not reported again.
local function close_entry(id)
  local text = redis.call('HGET', key('quarantine'), id)
  if text then
    redis.call('HDEL', key('quarantine'), id)
    redis.call('ZREM', key('quarantine-ages'), id .. ' ' .. cjson.decode(text).feed)
  end
end

-- Closes entries older than the retention of records, and the oldest beyond 250.
local function trim_quarantine()
  local ages = key('quarantine-ages')
  local ended = redis.call('ZRANGEBYSCORE', ages, '-inf', now - ask.retention.history)
  for _, members in ipairs({ ended, redis.call('ZRANGE', ages, 0, -1 - 250) }) do
    for _, member in ipairs(members) do
      close_entry(string.match(member, '^%x+'))
      redis.call('ZREM', ages, member) -- also where its entry is gone
    end
  end
end

local function set_aside(bad, raw)
  if is_marked(weeks, bad, ask.horizon) then
    counts.duplicate = counts.duplicate + 1
    return
  end
  write_mark(weeks, bad, ask.horizon)
  counts.quarantined = counts.quarantined + 1
  close_entry(bad.rid)
  local entry = { feed = ask.feed, at = now, problem = bad.problem, uid = bad.uid, raw = raw }
  redis.call('HSET', key('quarantine'), bad.rid, cjson.encode(entry))
  redis.call('ZADD', key('quarantine-ages'), now, bad.rid .. ' ' .. ask.feed)
  trim_quarantine()
end

-- Notes a feed as unreadable when half or more of a page cannot be read and some of that is new. The next page with
-- items of which less than half is unreadable clears the note. Empty pages change nothing.
local function note_unreadable(quarantined)
  if ask.shown == 0 then
    return
  end
  if 2 * ask.unread < ask.shown then
    redis.call('HDEL', feed, 'unreadable')
    return
  end
  local text = redis.call('HGET', feed, 'unreadable')
  if not text and quarantined == 0 then
    return
  end
  local since = text and cjson.decode(text).sinceMs or now
  local note = { sinceMs = since, shown = ask.shown, unread = ask.unread, problem = ask.bad[1].problem }
  redis.call('HSET', feed, 'unreadable', cjson.encode(note))
end

load_records(ask.events)
for i, event in ipairs(ask.events) do
  take_in(i - 1, event, ARGV[1 + 2 * i], ARGV[2 + 2 * i])
  if has_quarantined then
    close_entry(event.rid) -- it can be read now
  end
end
for i, bad in ipairs(ask.bad) do
  set_aside(bad, ARGV[2 + 2 * #ask.events + i])
end
for name, by in pairs(counts) do
  if by > 0 or sequence == 0 then -- the first commit creates all counters of the feed
    bump('f|' .. ask.feed .. '|' .. name, by)
  end
end

local before = ask.before or { duplicate = 0, quarantined = 0 }
local duplicate = before.duplicate + counts.duplicate
local is_known = ask.shown > 0 and duplicate == ask.shown
local ended = ask.last and (ask.caught_up or (ask.known_ends and is_known)) or false
local answer = { status = 'committed', counts = counts, at = now, ended = ended }
if #made > 0 then
  answer.made = made
end
if #fresh > 0 then
  answer.fresh = fresh
end
local result = cjson.encode(answer)

-- The last piece of a page moves the cursor and notes how the feed stands.
local function end_page()
  note_unreadable(before.quarantined + counts.quarantined)
  redis.call('HSET', feed, of('gen'), math.max(ask.gen, tonumber(state[4] or '0')), of('fp'), ask.fp, of('walk'), ARGV[2])
  if ask.of == '' then
    -- the fence has held: this scan began after the rewind
    redis.call('HDEL', feed, 'rewound', ask.beyond and 'rewound' or 'trouble')
    if ask.beyond then
      redis.call('HSET', feed, 'success', ask.requested)
    else
      redis.call('HSET', feed, 'success', ask.requested, 'backfill', ask.backfill and not ended and 1 or 0, 'ended', ended and 1 or 0)
      if ended then
        redis.call('HSET', feed, 'caught_up', ask.requested)
      end
    end
  else
    redis.call('HDEL', feed, 'rescan_trouble')
    redis.call('HSET', feed, of('done'), ask.caught_up and 1 or 0)
    if ask.caught_up then
      redis.call('HSET', feed, of('completed'), ask.requested, of('completed_walk'), ask.ends)
      if #ask.at_end > 0 then
        redis.call('HSET', feed, unpack(ask.at_end))
      end
    end
  end
  -- Only the tail moves its high-water mark: a rescan may be ahead of it.
  if ask.of == '' then
    local newest = math.min(ask.newest, now)
    if newest > tonumber(redis.call('HGET', feed, 'newest') or '0') then
      redis.call('HSET', feed, 'newest', newest)
    end
  end
end

-- Behind all that the page brought: what fails half way is read and taken in again.
unit.at_end[#unit.at_end + 1] = function()
  redis.call('HSET', feed, of('seq'), sequence + 1, of('cid'), ask.cid, of('result'), result)
  if ask.last then
    end_page()
  end
end
return result
