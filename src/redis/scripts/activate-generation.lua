#!lua flags=allow-oom
-- Makes a configuration the active one, or confirms that it still is. An active configuration that
-- no replica confirmed within the patience gives way to any other.
-- KEYS[1]  hash: hash, number, confirmed (ms)
-- ARGV     hash of what the configuration does with events; verb (start: it takes over | confirm);
--          patience in ms
-- Returns  the configuration's number, or 0 if another one is active
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
