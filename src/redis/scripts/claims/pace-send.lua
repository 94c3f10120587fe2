#!lua flags=allow-oom
-- Takes a sink's next send slot if its time has come. Nobody reserves a slot ahead.
-- KEYS[1]  when the next send may go, ms
-- ARGV[1]  spacing in ms
-- Returns  {1 (taken) | 0, ms until the next slot}
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + tonumber(clock[2]) / 1000
local spacing = tonumber(ARGV[1])
local next_at = math.min(tonumber(redis.call('GET', KEYS[1]) or '0'), now + spacing) -- a clock may be set back
if next_at > now then
  return { 0, math.ceil(next_at - now) }
end
local slack = math.min(spacing, 50) -- ms; a timer that fires late does not slow the pace
next_at = (now - next_at < slack and next_at or now) + spacing
redis.call('SET', KEYS[1], string.format('%.3f', next_at), 'PX', math.ceil(next_at - now) + 1000)
return { 1, math.max(0, math.ceil(next_at - now)) }
