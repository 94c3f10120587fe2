#!lua flags=allow-oom
-- Asks a sink's circuit whether to send, and looks at those of its destinations.
-- KEYS     the circuit, its probe lease; the same of each destination that has one of its own
-- ARGV     lease of a probe in ms, fingerprint of the sink's address ('': not known), who asks
-- Returns  {answer, ms until anything may be the probe, when the sink last accepted something (ms;
--          0: never, or not since it opened), how many messages more were made by splits since, of each
--          destination}; the answer is 0: send; above 0: ms to wait; -1: send, as the only probe of a
--          half-open circuit; -2: the same, but only what was never tried. Of a
--          destination: ms that its messages wait; 0: one may go, as the probe; -1: they may go,
--          but the last one failed; -2: nothing is wrong
-- @include lib/circuit.lua

local state = redis.call('HMGET', KEYS[1], 'until', 'disabled', 'paused', 'retry_after', 'untried_at', 'last_success', 'opened_at', 'parts')
local mark = state[2] and cjson.decode(state[2])

local function admit()
  if state[3] or (mark and (ARGV[2] == '' or mark.of == ARGV[2])) then
    return 5000 -- only an operator ends this: ask again every 5 s
  end
  local retry_after, shut_until = believable(state[4]), believable(state[1])
  local untried_at = math.min(shut_until, state[5] and believable(state[5]) or math.huge)
  local wait = math.max(retry_after, untried_at) - now
  if wait > 0 then
    return wait
  elseif not state[1] then
    return 0
  elseif not redis.call('SET', KEYS[2], ARGV[3], 'NX', 'PX', ARGV[1]) then
    return 1000
  end
  return now < shut_until and -2 or -1
end

-- what it accepted before it opened says nothing of now
local accepted = tonumber(state[6] or '0')
accepted = accepted > tonumber(state[7] or '0') and accepted or 0
local answer = { admit(), math.max(0, believable(state[1]) - now), accepted, tonumber(state[8] or '0') }
for i = 3, #KEYS, 2 do
  local own = redis.call('HMGET', KEYS[i], 'until', 'retry_after', 'trouble')
  local wait = math.max(believable(own[1]), believable(own[2])) - now
  if wait <= 0 and own[1] then
    -- for its probe, as long as that may take: whoever ends it wakes all
    wait = math.max(0, redis.call('PTTL', KEYS[i + 1]))
  elseif wait <= 0 then
    wait = own[3] and -1 or -2
  end
  answer[#answer + 1] = wait
end
return answer
