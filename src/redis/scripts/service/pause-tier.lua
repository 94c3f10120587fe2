#!lua flags=allow-oom
-- Pauses an organization's tier for every process; never shortens a longer pause.
-- KEYS     as in reserve-slot
-- ARGV[1]  for how long, ms
-- Returns  what is left of the pause, ms
-- @include lib/slots.lua

local own, base = KEYS[1], KEYS[2]
local stop = now + tonumber(ARGV[1]) * 1000
local before = believable(redis.call('HGET', own, 'pause'), 0)
stop = math.max(stop, before)
redis.call('HSET', own, 'pause', micros(stop))
keep(own)
if own ~= base then
  local others = math.max(stop, believable(redis.call('HGET', base, 'others'), 0))
  redis.call('HSET', base, 'others', micros(others))
  keep(base)
end
return math.ceil((stop - now) / 1000)
