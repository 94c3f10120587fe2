-- Exact memory of 64-bit marks in bucketed integer sets, one set of buckets a week. Members travel as
-- decimal strings: a Lua number would round them.
local week_ms = 7 * 24 * 3600 * 1000
local this_week = math.floor(now / week_ms)
local bucket_fill = 250 -- under set-max-intset-entries (512), above it a bucket costs six times as much

-- Weeks within the horizon, newest first; a clock that stepped back leaves weeks that are yet to come. One beyond the
-- horizon is not looked at, and forgotten only when its last bucket has expired: a clock may have been ahead.
local function open_weeks(horizon, reads_only)
  local weeks = {}
  local oldest = math.floor((now - horizon) / week_ms)
  local stored = redis.call('HGETALL', key('weeks'))
  for i = 1, #stored, 2 do
    local week = tonumber(stored[i])
    if week and week < oldest - 2 and not reads_only then
      redis.call('HDEL', key('weeks'), stored[i], stored[i] .. ':n')
    elseif week and week >= oldest then
      weeks[#weeks + 1] = { week = week, buckets = tonumber(stored[i + 1]) }
    end
  end
  table.sort(weeks, function(a, b)
    return a.week > b.week
  end)
  return weeks
end

-- The number of buckets is fixed when a week begins, for good: enough for what the week before held.
local function open_this_week(weeks)
  local place = 1
  while weeks[place] and weeks[place].week > this_week do
    place = place + 1
  end
  local before = weeks[place]
  if before and before.week == this_week then
    return before.buckets
  end
  local buckets = 16384 -- four million marks, with nothing known of the week before
  if before then
    local held = tonumber(redis.call('HGET', key('weeks'), before.week .. ':n') or '0')
    while buckets < 262144 and held / buckets > bucket_fill do
      buckets = buckets * 2
    end
  end
  redis.call('HSET', key('weeks'), this_week, buckets)
  table.insert(weeks, place, { week = this_week, buckets = buckets })
  return buckets
end

local function bucket_key(week, buckets, choice)
  return key('marks', week, choice % buckets)
end

local function write_mark(weeks, mark, horizon)
  local name = bucket_key(this_week, open_this_week(weeks), mark.b)
  if redis.call('SADD', name, mark.m) == 1 then
    redis.call('HINCRBY', key('weeks'), this_week .. ':n', 1)
    redis.call('PEXPIRE', name, horizon + week_ms, 'NX')
  end
end

-- Whether the mark is known; it stays as it is.
local function has_mark(weeks, mark)
  for _, entry in ipairs(weeks) do
    if redis.call('SISMEMBER', bucket_key(entry.week, entry.buckets, mark.b), mark.m) == 1 then
      return true
    end
  end
  return false
end

-- Whether it was known until now.
local function erase_mark(weeks, mark)
  local was_known = false
  for _, entry in ipairs(weeks) do
    if redis.call('SREM', bucket_key(entry.week, entry.buckets, mark.b), mark.m) == 1 then
      redis.call('HINCRBY', key('weeks'), entry.week .. ':n', -1)
      was_known = true
    end
  end
  return was_known
end

-- Whether the mark is known. One that was last seen over half the horizon ago is written again.
local function is_marked(weeks, mark, horizon)
  for _, entry in ipairs(weeks) do
    if redis.call('SISMEMBER', bucket_key(entry.week, entry.buckets, mark.b), mark.m) == 1 then
      if (this_week - entry.week) * week_ms > horizon / 2 then
        write_mark(weeks, mark, horizon)
      end
      return true
    end
  end
  return false
end
