#!lua flags=allow-oom
-- Takes the next free slot of an organization's tier: one request per slot, `spacing` apart, no
-- burst. A request whose organization is not known yet counts under its base URL. It and those of
-- known organizations keep that distance too, since they may belong to the same one.
-- KEYS[1]  the organization's tier
-- KEYS[2]  the same tier of its base URL; equal to KEYS[1] while the organization is unknown
-- ARGV[1]  as in claim-slot
-- ARGV[2]  spacing in µs; the largest given within the last hour holds
-- ARGV[3]  0, or for a patient request: it takes a slot that nobody else wants, or one in so many
-- Returns  {slot, wait}: µs since 1970, µs from now; claim-slot follows then.
--          {slot, 0, use}: it was free and is claimed, as claim-slot says
--          {0, wait}: no slot for the patient request; it may ask again after so many µs
-- @include lib/slots.lua

local own, base = KEYS[1], KEYS[2]
local share = tonumber(ARGV[3])
local fields = { 'last', 'pause', 'others', 'spacing', 'spacing_at', 'given', 'used', 'others_used' }
local state = redis.call('HMGET', own, unpack(fields))

local spacing = tonumber(ARGV[2])
local kept = tonumber(state[4] or '0')
local age = now - tonumber(state[5] or '0')
if kept > spacing and age < remembered then
  spacing = kept
elseif kept ~= spacing or age > remembered / 2 then
  redis.call('HSET', own, 'spacing', micros(spacing), 'spacing_at', micros(now))
end

local last = math.max(believable(state[1], spacing), believable(state[7], 0))
local slot = math.max(now, last + spacing, believable(state[2], spacing))
local wide = own ~= base and redis.call('HMGET', base, 'last', 'pause', 'others', 'used', 'others_used')
if wide then
  slot = math.max(slot, believable(wide[2], spacing), believable(wide[4], 0) + spacing)
  -- A request of an unknown organization may have its slot far ahead, because another organization is paused. This
  -- one goes before it if there is room, and after the one that was used last.
  local stranger = believable(wide[1], spacing)
  if slot + spacing > stranger then
    slot = math.max(slot, stranger + spacing)
  end
else
  slot = math.max(slot, believable(state[3], spacing), believable(state[8], 0) + spacing)
end
if share > 0 and slot > now and tonumber(state[6] or '0') < share - 1 then
  return { 0, slot - now }
end

local use = now + tonumber(ARGV[1])
if wide then
  local others = math.max(believable(wide[3], spacing), slot + spacing)
  local others_used = math.max(believable(wide[5], 0), slot == now and use or 0)
  redis.call('HSET', base, 'others', micros(others), 'others_used', micros(others_used))
  keep(base)
end

local given = share > 0 and 0 or tonumber(state[6] or '0') + 1
local used = slot == now and use or believable(state[7], 0)
redis.call('HSET', own, 'last', micros(slot), 'given', given, 'used', micros(used))
keep(own)
if slot == now then
  return { slot, 0, use }
end
return { slot, slot - now }
