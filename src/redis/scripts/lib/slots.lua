-- Shared by the scripts of the tier limiter. All times are microseconds of Redis' own clock.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- Reads a stored time. No pause lasts longer than 15 minutes and a tenth (pauseTier of upstream/rate-limits.ts) and a
-- process holds one slot at a time. So a time further ahead was written before the clock was set back: it counts as
-- 0, never.
local function believable(text, spacing)
  local at = tonumber(text or '0')
  if at > now + 17 * 60000000 + 60 * spacing then
    return 0
  end
  return at
end

local function micros(number)
  return string.format('%.0f', number)
end

-- The largest spacing counts for an hour; the keys expire two hours after their last use.
local remembered = 3600000000
local function keep(name)
  redis.call('PEXPIRE', name, 7200000)
end
