#!lua flags=allow-oom
-- Ends what keeps a sink from being tried: an operator's pause, the mark that its address is gone, and the wait of an
-- open circuit. An open circuit's next send is the probe. A pause that the sink asked for stays.
-- KEYS     the circuit, those of its destinations
-- Returns  ''
-- @include lib/clock.lua

redis.call('HDEL', KEYS[1], 'paused', 'disabled')
for _, circuit in ipairs(KEYS) do
  if tonumber(redis.call('HGET', circuit, 'until') or '0') > now then
    redis.call('HSET', circuit, 'until', now)
  end
end
return ''
