#!lua flags=allow-oom
-- Hints at which pairs of account and sink have work due, and when, so that nobody has to ask every
-- account. Not a source of truth: a slow pass finds what it misses.
-- KEYS[1]  the hints
-- ARGV     verb and its arguments: 'tell' [pair, ms from now, …] sets when to look, unless an
--          earlier time is set; 'read' count, how many to pass over: returns pairs whose time has
--          come; 'clear' [pair, value as read, ms from now | '' (nothing more is due), …] sets the
--          next time, unless the hint changed since it was read
-- Returns  read: {pair, value, …}; else nothing
-- @include lib/clock.lua

local hints = KEYS[1]

-- Three decimals count the writes of a pair: even for the same millisecond a value comes back only
-- after 1000 writes, so a reader clears only what it read.
local function write(pair, at)
  local known = tonumber(redis.call('ZSCORE', hints, pair) or '')
  local count = known and math.floor((known % 1) * 1000 + 0.5) + 1 or tonumber(clock[2])
  redis.call('ZADD', hints, string.format('%.0f.%03d', math.floor(at), count % 1000), pair)
end

if ARGV[1] == 'read' then
  return redis.call('ZRANGEBYSCORE', hints, '-inf', now + 1, 'WITHSCORES', 'LIMIT', ARGV[3], ARGV[2])
elseif ARGV[1] == 'tell' then
  for i = 2, #ARGV, 2 do
    local known = tonumber(redis.call('ZSCORE', hints, ARGV[i]) or '') or math.huge
    write(ARGV[i], math.min(known, now + tonumber(ARGV[i + 1])))
  end
else
  for i = 2, #ARGV, 3 do
    if redis.call('ZSCORE', hints, ARGV[i]) == ARGV[i + 1] then
      if ARGV[i + 2] == '' then
        redis.call('ZREM', hints, ARGV[i])
      else
        write(ARGV[i], now + tonumber(ARGV[i + 2]))
      end
    end
  end
end
