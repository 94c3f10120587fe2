local base = KEYS[1]
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local final = { delivered = true, dead = true, suppressed = true, diverted = true, discarded = true }

local function key(...)
  return table.concat({ base, ... }, ':')
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

-- Every ref ends with its sink.
local function due_of(ref)
  return key('due', string.match(ref, '[^:]+$'))
end

local function wake(ref, at)
  redis.call('ZADD', due_of(ref), at, ref)
end

local function unwake(ref)
  redis.call('ZREM', due_of(ref), ref)
end

-- Keeps the order of what is collected within one millisecond.
local collected = tonumber(clock[2]) % 1000

-- Sends an item on its way: alone, or (batch_wait in ms) into its sink's collection.
local function enqueue(rid, n, item, batch_wait)
  move(item, 'queued')
  item.at = nil
  item.why = nil
  if batch_wait then
    unwake(item_ref(rid, n, item))
    collected = collected + 1
    local order = string.format('%.3f', now + collected / 1000)
    redis.call('ZADD', key('collect', item.k), order, item_ref(rid, n, item))
    redis.call('ZADD', due_of('c:' .. item.k), 'NX', now + batch_wait, 'c:' .. item.k)
  else
    wake(item_ref(rid, n, item), now)
  end
end

-- Lets a record expire once every item is final, and keeps it as long as one is not.
local function rest(rid, record, retention)
  for _, item in ipairs(record.i) do
    if not final[item.st] then
      redis.call('PERSIST', key('rec', rid))
      redis.call('PERSIST', key('pay', rid))
      return
    end
  end
  redis.call('PEXPIRE', key('rec', rid), retention.story)
  redis.call('PEXPIRE', key('pay', rid), retention.payload)
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
