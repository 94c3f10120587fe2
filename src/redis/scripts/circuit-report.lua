#!lua flags=allow-oom
-- Tells a sink's circuit how a send went. Five faults in a row open it, one that cannot heal by itself
-- opens it at once; 30 s at first, doubling to 15 min while probes fail.
-- KEYS[1]  the circuit, KEYS[2] its probe lease
-- ARGV     word: ok (accepted), answered (refused, but alive), fault, broken
-- Returns  'opened <until ms>', 'closed', or ''
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local state = redis.call('HMGET', KEYS[1], 'until', 'openings', 'faults')
local word = ARGV[1]

if word == 'ok' then
  redis.call('HSET', KEYS[1], 'last_success', now)
end
if word == 'ok' or word == 'answered' then
  redis.call('HDEL', KEYS[1], 'until', 'openings', 'faults')
  redis.call('DEL', KEYS[2])
  return state[1] and 'closed' or ''
end

local faults = redis.call('HINCRBY', KEYS[1], 'faults', 1)
local is_open = state[1] and now < tonumber(state[1])
if is_open or (not state[1] and word == 'fault' and faults < 5) then
  return ''
end
local openings = redis.call('HINCRBY', KEYS[1], 'openings', 1)
local open_until = now + math.min(30000 * 2 ^ (openings - 1), 900000)
redis.call('HSET', KEYS[1], 'until', string.format('%d', open_until))
redis.call('DEL', KEYS[2])
return 'opened ' .. string.format('%d', open_until)
