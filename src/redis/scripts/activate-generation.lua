-- Registers a configuration as the active one, or confirms that it is.
-- KEYS[1]  the generation's key
-- ARGV     hash of feeds, sinks and routes
-- Returns  its number
local known = redis.call('HGET', KEYS[1], 'hash')
if known ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'hash', ARGV[1])
  redis.call('HINCRBY', KEYS[1], 'number', 1)
end
return tonumber(redis.call('HGET', KEYS[1], 'number'))
