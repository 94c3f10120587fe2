-- Dedupe fingerprints ("marks", 63 bits): an exact memory in integer sets, one series of buckets for each week.
-- Members travel as decimal strings: a Lua number would round them. A week begins with as many buckets as the week
-- before filled, and splits one after the other as it grows (linear hashing). `b` chooses among the buckets that the
-- week began with. The member's own bits choose among those that were split off, so that a bucket can be split
-- knowing its members alone. The marks of one event agree in all of these.
local week_ms = 7 * 24 * 3600 * 1000
local this_week = math.floor(now / week_ms)
-- Members of a bucket, on average; 400 in one that is split next. Above set-max-intset-entries (512) Redis drops the
-- integer encoding, and a member takes six times the memory. None gets there with up to four marks an event, one in
-- 60 with twenty, one in 16 with fifty.
local bucket_fill = 200
local split_bits = 262144 -- at most so many buckets come from each one that the week began with

local function power_below(number)
  local power = 1
  while power * 2 <= number do
    power = power * 2
  end
  return power
end

-- `first`: how many buckets the week began with.
local function week_entry(week, buckets, first)
  return {
    week = week,
    name = key('marks', week, ''),
    buckets = buckets,
    power = power_below(buckets),
    first = first,
  }
end

-- The weeks within the horizon (ms), newest first; future weeks are among them after the clock was
-- set back. A week beyond the horizon is skipped, and forgotten only once its last bucket has
-- expired: the clock may be ahead now.
local function open_weeks(horizon, reads_only)
  local weeks = {}
  local oldest = math.floor((now - horizon) / week_ms)
  local stored = redis.call('HGETALL', key('weeks'))
  local fields = {}
  for i = 1, #stored, 2 do
    fields[stored[i]] = tonumber(stored[i + 1])
  end
  for field, buckets in pairs(fields) do
    local week = tonumber(field)
    if week and week < oldest - 2 and not reads_only then
      redis.call('HDEL', key('weeks'), field, field .. ':n', field .. ':first')
    elseif week and week >= oldest then
      weeks[#weeks + 1] = week_entry(week, buckets, fields[field .. ':first'])
    end
  end
  table.sort(weeks, function(a, b)
    return a.week > b.week
  end)
  return weeks
end

local function open_this_week(weeks)
  local place = 1
  while weeks[place] and weeks[place].week > this_week do
    place = place + 1
  end
  local before = weeks[place]
  if before and before.week == this_week then
    return before
  end
  local held = before and tonumber(redis.call('HGET', key('weeks'), before.week .. ':n') or '0') or 0
  local first = power_below(held / bucket_fill)
  redis.call('HSET', key('weeks'), this_week, first, this_week .. ':first', first)
  table.insert(weeks, place, week_entry(this_week, first, first))
  return weeks[place]
end

-- The low 18 bits of a member: its last 18 digits decide them, read in two parts that a Lua number
-- holds.
local function bits_of(member)
  local high = math.abs(tonumber(string.sub(member, -18, -10)) or 0)
  return (high % 512 * 1e9 + math.abs(tonumber(string.sub(member, -9)))) % split_bits
end

local function bucket_key(entry, mark)
  mark.bits = mark.bits or bits_of(mark.m)
  local hash = mark.b % entry.first + entry.first * mark.bits
  local number = hash % (2 * entry.power)
  if number >= entry.buckets then
    number = hash % entry.power
  end
  return entry.name .. number
end

-- Moves half of the next bucket into a new one. Buckets are split in order, so each has been split
-- once when their number has doubled.
local function split_bucket(entry, horizon)
  local from, to = entry.buckets - entry.power, entry.buckets
  local moved = {}
  for _, member in ipairs(redis.call('SMEMBERS', entry.name .. from)) do
    local hash = from % entry.first + entry.first * bits_of(member)
    if hash % (2 * entry.power) == to then
      moved[#moved + 1] = member
    end
  end
  if #moved > 0 then
    redis.call('SREM', entry.name .. from, unpack(moved))
    redis.call('SADD', entry.name .. to, unpack(moved))
    redis.call('PEXPIRE', entry.name .. to, horizon + week_ms)
  end
  entry.buckets = entry.buckets + 1
  entry.power = power_below(entry.buckets)
  redis.call('HSET', key('weeks'), entry.week, entry.buckets)
end

local function by_bucket(entry, marks)
  local buckets = {}
  for _, mark in ipairs(marks) do
    local name = bucket_key(entry, mark)
    local members = buckets[name] or {}
    members[#members + 1] = mark.m
    buckets[name] = members
  end
  return buckets
end

-- Writes marks that this week does not have; returns how many it holds then. Buckets are split before:
-- the marks of a page would take a small one beyond its encoding.
local function write_all(weeks, marks, horizon)
  local entry = open_this_week(weeks)
  local before = tonumber(redis.call('HGET', key('weeks'), entry.week .. ':n') or '0')
  while before + #marks > bucket_fill * entry.buckets and entry.buckets < split_bits * entry.first do
    split_bucket(entry, horizon)
  end
  local held = before
  for name, members in pairs(by_bucket(entry, marks)) do
    local added = call_all('SADD', name, members, 1)
    if added > 0 and redis.call('SCARD', name) == added then
      redis.call('PEXPIRE', name, horizon + week_ms)
    end
    held = held + added
  end
  if held > before then
    redis.call('HINCRBY', key('weeks'), entry.week .. ':n', held - before)
  end
  return held
end

-- Writes a mark when the script ends, behind the records: what fails half way is new again.
local written, to_write = {}, {}
local function write_mark(weeks, mark, horizon)
  if #to_write == 0 then
    unit.at_end[#unit.at_end + 1] = function()
      write_all(weeks, to_write, horizon)
    end
  end
  if not written[mark.m] then
    written[mark.m] = true
    to_write[#to_write + 1] = mark
  end
end

-- Whether the mark is known. Unlike is_marked it never renews the mark.
local function has_mark(weeks, mark)
  for _, entry in ipairs(weeks) do
    if redis.call('SISMEMBER', bucket_key(entry, mark), mark.m) == 1 then
      return true
    end
  end
  return false
end

-- Whether the mark is known. One that was written over half the horizon ago is written again.
local function is_marked(weeks, mark, horizon)
  if written[mark.m] then
    return true
  end
  for _, entry in ipairs(weeks) do
    if redis.call('SISMEMBER', bucket_key(entry, mark), mark.m) == 1 then
      if (this_week - entry.week) * week_ms > horizon / 2 then
        write_mark(weeks, mark, horizon)
      end
      return true
    end
  end
  return false
end
