#!lua flags=allow-oom
-- Asks at the time of a reserved slot whether the request may begin now. Two uses are never closer
-- than the spacing. A slot is void once the tier was paused, or when it is late by more than the
-- spacing, 250 ms at least.
-- KEYS     as in reserve-slot
-- ARGV[1]  by how much later than usual the request may begin, µs: others keep their distance
-- ARGV[2]  the slot, µs
-- ARGV[3]  0, or the use that the caller claimed before and did not make: it moves to now unless
--          others came after it
-- ARGV[4]  how late the caller may be without moving the slots after it, µs
-- Returns  {0, use, late}: go, so many µs late; {wait}: ask again after so many µs; {-1}: void
-- @include lib/slots.lua

local own, base = KEYS[1], KEYS[2]
local slot, unmade = tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', own, 'pause', 'used', 'spacing')
local wide = redis.call('HMGET', base, 'pause', 'used', 'others_used')
local spacing = tonumber(state[3] or '0')
local used = believable(state[2], 0)
local is_moved = used == unmade and used > 0
local is_late = now > slot + math.max(spacing, 250000)

if is_late and not is_moved then
  return { -1 }
end
if math.max(believable(state[1], spacing), believable(wide[1], spacing)) > slot then
  return { -1 }
end
-- Requests of unknown organizations, and those of all others, may be of the same one.
local last = math.max(is_moved and 0 or used, believable(wide[own == base and 3 or 2], 0))
local use = math.max(slot, last + spacing)
if now < use then
  return { math.ceil(use - now) }
end
if is_moved or now > use + tonumber(ARGV[4]) then
  use = now
end
used = use + tonumber(ARGV[1])
redis.call('HSET', own, 'used', micros(used))
if own ~= base then
  redis.call('HSET', base, 'others_used', micros(math.max(used, believable(wide[3], 0))))
end
return { 0, used, now - use }
