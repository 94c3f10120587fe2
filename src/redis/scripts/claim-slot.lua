#!lua flags=allow-oom
-- Asks at the time of a reserved slot whether the request may go out now. A slot is void 250 ms
-- after its time, and once the tier was paused; two claims are never closer than the limit allows.
-- KEYS     as in reserve-slot
-- ARGV[1]  the slot, µs
-- Returns  0: go; above 0: ask again after so many µs; -1: void, reserve another
-- @include lib/slots.lua

local slot = tonumber(ARGV[1])
local state = redis.call('HMGET', KEYS[1], 'pause', 'used', 'spacing')
local spacing = tonumber(state[3] or '0')
local wide = redis.call('HGET', KEYS[2], 'pause')
local pause = math.max(believable(state[1], spacing), believable(wide, spacing))

if pause > slot or now > slot + 250000 then
  return -1
end
-- Slots are 3 % further apart than the limit requires; up to that much lateness is made up for
-- here.
local next_use = math.max(slot, believable(state[2], spacing) + spacing / 1.03)
if now < next_use then
  return math.ceil(next_use - now)
end
redis.call('HSET', KEYS[1], 'used', micros(now))
return 0
