#!lua flags=allow-oom
-- Pauses an account: at first for a given time, then for twice the last pause until a success, up
-- to a limit. A failure during a pause neither lengthens nor doubles it.
-- KEYS[1]  the account's pause: hash of until (ms), times, trouble (JSON)
-- ARGV     reason, first pause in ms, longest pause in ms, answer
-- Returns  {ms left, how many pauses since the last success, 1 if this call made the pause}
-- @include lib/clock.lua
-- @include lib/trouble.lua

local state = redis.call('HMGET', KEYS[1], 'until', 'times')
local stop, times = tonumber(state[1] or '0'), tonumber(state[2] or '0')
local longest = tonumber(ARGV[3])

if now < stop and stop <= now + longest then
  note_trouble(KEYS[1], 'trouble', ARGV[1], ARGV[4], stop - now)
  return { stop - now, times, 0 }
end
times = times + 1
local span = math.min(longest, tonumber(ARGV[2]) * 2 ^ math.min(times - 1, 20))
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', now + span), 'times', times)
note_trouble(KEYS[1], 'trouble', ARGV[1], ARGV[4], span)
redis.call('PEXPIRE', KEYS[1], 4 * longest)
return { span, times, 1 }
