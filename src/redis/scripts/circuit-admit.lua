#!lua flags=allow-oom
-- Asks a sink's circuit whether to send.
-- KEYS[1]  the circuit, KEYS[2] its probe lease
-- ARGV     lease of a probe in ms, fingerprint of the sink's address ('': not known), who asks
-- Returns  0: send; above 0: ms to wait; -1: send, as the only probe of a half-open circuit
-- @include lib/circuit.lua

local state = redis.call('HMGET', KEYS[1], 'until', 'disabled', 'paused', 'retry_after')
local mark = state[2] and cjson.decode(state[2])
local is_disabled = mark and (ARGV[2] == '' or mark.of == ARGV[2])
if state[3] or is_disabled then
  return 5000 -- only an operator ends this: ask again every 5 s
end
local shut_until = math.max(believable(state[1]), believable(state[4]))
if now < shut_until then
  return shut_until - now
end
if not state[1] then
  return 0
end
if redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[1]) then
  return -1
end
return 1000
