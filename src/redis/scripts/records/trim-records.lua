#!lua flags=allow-oom
-- Drops settled records with their payloads and dead letters, oldest first: those beyond
-- retention.history, then as many as free the bytes wanted. What ended before the last of them goes from
-- the stream of endings, too. The last call also drops the dead letters whose records have expired. Runs
-- when memory is full. One call looks at 200 records and, at the end, at 200 letters of each sink.
-- KEYS[1]  the account's base
-- ARGV     retention.history (ms), bytes to free
-- Returns  what was dropped to free bytes: {records, bytes, when the last of them was settled (ms)},
--          then 1 if a further call may drop more, else 0
-- @include lib/ledger.lua
-- @include lib/weight.lua

local ended_before, wanted = now - tonumber(ARGV[1]), tonumber(ARGV[2])
local step = 200
local events, freed, last, latest = 0, 0, 0, 0
local endings_from = ended_before

local function drop(rid, record)
  for i, item in ipairs(record and record.i or {}) do
    if item.st == 'dead' then
      redis.call('ZREM', key('dead', item.k), item_ref(rid, i - 1, item))
    end
    if item.b then
      redis.call('DEL', key('told', item.b)) -- it cannot be drawn without each event
    end
  end
  redis.call('DEL', key('rec', rid), key('pay', rid))
  redis.call('ZREM', key('records'), rid)
  bump('records', -1)
end

local function make_room(rid, record)
  freed = freed + weigh_record(rid)
  if record then
    latest = math.max(latest, record.t + 1)
    events = events + 1
  end
  drop(rid, record)
end

local records = redis.call('ZRANGEBYSCORE', key('records'), 0, '+inf', 'WITHSCORES', 'LIMIT', 0, step)
local more = #records == 2 * step and 1 or 0
for i = 1, #records, 2 do
  local rid, at = records[i], tonumber(records[i + 1])
  local is_ended = at < ended_before
  if not is_ended and freed >= wanted then
    more = 0
    break
  end
  local record = load_record(rid)
  if record and place_of(record) < 0 then
    redis.call('ZADD', key('records'), place_of(record), rid) -- pending: the index was wrong
  elseif is_ended then
    drop(rid, record)
  else
    make_room(rid, record)
    last, endings_from = at, at
  end
end
redis.call('XTRIM', key('ended'), 'MINID', '~', string.format('%.0f', math.max(0, endings_from)))

-- Another item of the event may have kept its record for longer than the letter is old.
local function drop_expired_letters(letters)
  local old = redis.call('ZRANGEBYSCORE', letters, '-inf', ended_before, 'LIMIT', 0, step)
  for _, ref in ipairs(old) do
    if redis.call('EXISTS', key('rec', split_ref(ref)[2])) == 0 then
      redis.call('ZREM', letters, ref)
    end
  end
end

if more == 0 then
  for _, sink in ipairs(redis.call('SMEMBERS', key('sinks'))) do
    drop_expired_letters(key('dead', sink))
  end
end

-- Drops the counts of days beyond the history.
local function drop_days()
  local first = tonumber(redis.call('HGET', key('counters'), 'first_day'))
  local kept = math.floor(ended_before / day_ms)
  for day = first or kept, kept - 1 do
    redis.call('DEL', key('day', day))
  end
  if first and first < kept then
    redis.call('HSET', key('counters'), 'first_day', kept)
  end
end

drop_days()

-- Of the events first seen after this time no record was dropped: an audit compares only those.
if latest > tonumber(redis.call('GET', key('trimmed')) or '0') then
  redis.call('SET', key('trimmed'), string.format('%.0f', latest))
end
return { events, freed, last, more }
