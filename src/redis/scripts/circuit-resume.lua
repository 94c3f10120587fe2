#!lua flags=allow-oom
-- Ends what keeps a sink from being tried: an operator's pause, the mark that its address is gone,
-- and the wait of an open circuit, whose next send is the probe. A pause that the sink asked for
-- stays.
-- KEYS[1]  the circuit
-- Returns  ''
-- @include lib/clock.lua

redis.call('HDEL', KEYS[1], 'paused', 'disabled')
if tonumber(redis.call('HGET', KEYS[1], 'until') or '0') > now then
  redis.call('HSET', KEYS[1], 'until', now)
end
return ''
