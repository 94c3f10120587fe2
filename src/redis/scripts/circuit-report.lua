#!lua flags=allow-oom
-- Tells a sink's circuit how a send went. Five faults in a row open it, one that cannot heal by itself
-- opens it at once; doubling to 15 min while probes fail. One that says that the address
-- is no more disables the sink, for as long as it has this address. A pause that the sink asked for holds whatever
-- else it answers.
-- KEYS[1]  the circuit, KEYS[2] its probe lease
-- ARGV     word: ok (accepted), answered (refused, but alive), fault, broken, gone, none; fingerprint of the sink's
--          address ('': not known); what was answered (gone); how long it opens at first, ms; who sent it as the
--          probe ('': it was none); the pause asked for, ms (0: none)
-- Returns  'opened <until ms>', 'open' (before), 'closed', 'disabled', or ''
-- @include lib/clock.lua

local state = redis.call('HMGET', KEYS[1], 'until', 'disabled', 'retry_after')
local word, address = ARGV[1], ARGV[2]
local mark = state[2] and cjson.decode(state[2])

local function close()
  redis.call('HDEL', KEYS[1], 'until', 'openings', 'faults', 'opened_at')
end

local is_probe = ARGV[5] ~= '' and redis.call('GET', KEYS[2]) == ARGV[5]
local retry_after = now + tonumber(ARGV[6])
if retry_after > math.max(now, tonumber(state[3] or '0')) then
  redis.call('HSET', KEYS[1], 'retry_after', string.format('%d', retry_after))
end
if word == 'none' then
  if is_probe then
    redis.call('DEL', KEYS[2]) -- the next one tries
  end
  return ''
end
if word == 'ok' then
  redis.call('HSET', KEYS[1], 'last_success', now)
end
if mark and (address == '' or mark.of == address) then
  return '' -- what was in the air meanwhile changes nothing
end
if word == 'gone' then
  close()
  redis.call('HSET', KEYS[1], 'disabled', cjson.encode({ reason = ARGV[3], sinceMs = now, of = address }))
  return 'disabled'
end
if word == 'ok' then
  redis.call('HDEL', KEYS[1], 'disabled') -- of another address, which may come back one day
end
if word == 'ok' or word == 'answered' then
  close()
  return state[1] and 'closed' or ''
end

local faults = redis.call('HINCRBY', KEYS[1], 'faults', 1)
if state[1] and not (is_probe and now >= tonumber(state[1])) then
  return 'open' -- sent before it opened: the probe alone says whether the sink is back
elseif not state[1] and word == 'fault' and faults < 5 then
  return ''
end
local openings = redis.call('HINCRBY', KEYS[1], 'openings', 1)
local open_until = now + math.min(tonumber(ARGV[4]) * 2 ^ (openings - 1), 900000)
redis.call('HSET', KEYS[1], 'until', string.format('%d', open_until))
redis.call('HSETNX', KEYS[1], 'opened_at', now)
redis.call('DEL', KEYS[2])
return 'opened ' .. string.format('%d', open_until)
