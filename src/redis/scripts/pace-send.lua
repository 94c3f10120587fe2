#!lua flags=allow-oom
-- Reserves the next place in a sink's pace, or pushes all places behind a pause.
-- KEYS[1]  the arrival time of the next send
-- ARGV     spacing in ms, pause in ms (0: reserve)
-- Returns  ms to wait for the reserved place
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + tonumber(clock[2]) / 1000
local next_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0'))
local pause = tonumber(ARGV[2])
local stored = pause > 0 and math.max(next_at, now + pause) or next_at + tonumber(ARGV[1])
redis.call('SET', KEYS[1], string.format('%.3f', stored), 'PX', math.ceil(stored - now) + 1000)
return math.ceil(next_at - now)
