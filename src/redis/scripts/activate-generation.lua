#!lua flags=allow-oom
-- Registers a configuration as the active one, or says that it still is. One that nobody confirmed for
-- too long gives way to whoever asks.
-- KEYS[1]  the generation's key
-- ARGV     hash of what the configuration does with events; verb (start: it takes over | confirm); patience in ms
-- Returns  its number, or 0 where another one is active
-- @include lib/clock.lua

local state = redis.call('HMGET', KEYS[1], 'hash', 'confirmed')
local is_active = state[1] == ARGV[1]
local is_deserted = now > tonumber(state[2] or '0') + tonumber(ARGV[3])

if not is_active then
  if ARGV[2] ~= 'start' and not is_deserted then
    return 0
  end
  redis.call('HSET', KEYS[1], 'hash', ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'number', 1)
end
redis.call('HSET', KEYS[1], 'confirmed', now)
return tonumber(redis.call('HGET', KEYS[1], 'number'))
