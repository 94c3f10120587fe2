#!lua flags=allow-oom
-- Names who has something due, so that nobody asks every account: pairs of account and sink by the time at which to
-- look. It holds no truth: what it misses is found by a slow pass.
-- KEYS[1]  the hints
-- ARGV     verb: 'tell' [pair, ms from now, …]: to be looked at then, or earlier where it was so before
--          'read' count: those whose time has come; 'clear' [pair, value as read, ms from now | '', …]: looked at,
--          unless it was told anew meanwhile; '' : nothing more is due
-- Returns  read: {pair, value, …}; else nothing
-- @include lib/clock.lua

local hints = KEYS[1]

-- Of one pair no write has the value of the one before it, nor of the 999 before that, though it be for the same
-- millisecond: a reader clears only what it read. The last three digits count them.
local function write(pair, at)
  local known = tonumber(redis.call('ZSCORE', hints, pair) or '')
  local count = known and math.floor((known % 1) * 1000 + 0.5) + 1 or tonumber(clock[2])
  redis.call('ZADD', hints, string.format('%.0f.%03d', math.floor(at), count % 1000), pair)
end

if ARGV[1] == 'read' then
  return redis.call('ZRANGEBYSCORE', hints, '-inf', now + 1, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
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
