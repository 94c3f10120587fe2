#!lua flags=allow-oom
-- Takes the next free slot of an organization's tier: one request each, `spacing` apart, no burst.
-- Requests whose organization is not known yet count under their base URL; they and the known ones
-- keep their distance from each other, since they may be of the same organization.
-- KEYS[1]  the organization's tier
-- KEYS[2]  the same tier of its base URL; equal to KEYS[1] while the organization is unknown
-- ARGV[1]  spacing in µs; the largest given within the last hour holds
-- Returns  {slot, wait}: µs since 1970, µs from now. With a wait of 0 the slot is claimed already
-- @include lib/slots.lua

local own, base = KEYS[1], KEYS[2]
local state = redis.call('HMGET', own, 'last', 'pause', 'others', 'spacing', 'spacing_at')

local spacing = tonumber(ARGV[1])
local kept = tonumber(state[4] or '0')
if kept > spacing and now - tonumber(state[5]) < remembered then
  spacing = kept
else
  redis.call('HSET', own, 'spacing', micros(spacing), 'spacing_at', micros(now))
end

local slot = math.max(now, believable(state[1], spacing) + spacing, believable(state[2], spacing))
if own == base then
  slot = math.max(slot, believable(state[3], spacing))
else
  local wide = redis.call('HMGET', base, 'last', 'pause', 'others')
  slot = math.max(slot, believable(wide[1], spacing) + spacing, believable(wide[2], spacing))
  local others = math.max(believable(wide[3], spacing), slot + spacing)
  redis.call('HSET', base, 'others', micros(others))
  keep(base)
end

redis.call('HSET', own, 'last', micros(slot))
if slot == now then
  redis.call('HSET', own, 'used', micros(now))
end
keep(own)
return { slot, slot - now }
