-- The times at which the pauses of a sink end.
-- @include lib/clock.lua

local longest_pause = 900000

-- Reads a stored time. No pause lasts longer than a quarter of an hour (parseRetryAfter of
-- lib/config/web-address.ts), so a time more than a minute further ahead was written before the clock was set back.
-- That pause counts as over.
local function believable(text)
  local at = tonumber(text or '0')
  if at > now + longest_pause + 60000 then
    return 0
  end
  return at
end
