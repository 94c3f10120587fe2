#!lua flags=allow-oom
-- Reports to a sink's circuit how a send ended. Five faults in a row open the circuit, `broken` (a fault that does
-- not heal by itself) at once. While probes fail it opens for twice as long each time, up to 15 minutes. Only a probe
-- extends or closes an open circuit: every other send began before it opened. A receiver that is half dead answers
-- some of those late. A circuit that closed then would send everything there at once, and forget how often it had
-- opened. Where the message may be to blame for its failure, what was never tried has a probe of its own once the
-- first opening time is over. That holds however long the circuit stays open for the others. `gone` disables the sink
-- until its address changes. A pause that the sink asked for holds whatever the answer was. The last failure is kept
-- with the address until something is accepted; one refused message is none of the sink's.
-- KEYS[1]  the circuit, KEYS[2] its probe lease
-- ARGV     word: ok (accepted), answered (refused, but alive), fault, broken, gone, none (no
--          answer that says anything); fingerprint of the sink's address ('': not known); the
--          answer; how long it opens at first, ms; who sent it as the probe ('': it was no probe);
--          the pause asked for, ms (0: none); reason of the failure ('': not known); when the
--          message is tried again, ms from now ('': never); whether the message may be to blame:
--          '' (no other would fare better), first (it may; its first try), again (it may, and has
--          failed before); whether it is a destination's: '' or 1. That of a destination is forgotten
--          after a week without a report, in case it was removed; how many messages more it goes on as
-- Returns  'opened <until ms>', 'open' (it was open before), 'closed', 'disabled', or ''
-- @include lib/circuit.lua
-- @include lib/trouble.lua

local state = redis.call('HMGET', KEYS[1], 'until', 'disabled', 'retry_after', 'untried_at')
local word, address = ARGV[1], ARGV[2]
local mark = state[2] and cjson.decode(state[2])

if ARGV[10] ~= '' then
  redis.call('HSET', KEYS[1], 'told', now) -- nothing expires that does not exist
  redis.call('PEXPIRE', KEYS[1], 7 * 86400000)
end

local function close()
  redis.call('HDEL', KEYS[1], 'until', 'untried_at', 'openings', 'faults', 'messages', 'parts', 'opened_at')
end

local is_probe = ARGV[5] ~= '' and redis.call('GET', KEYS[2]) == ARGV[5]
local retry_after = now + tonumber(ARGV[6])
if retry_after > math.max(now, believable(state[3])) then
  redis.call('HSET', KEYS[1], 'retry_after', string.format('%d', retry_after))
end
if ARGV[7] ~= '' and word ~= 'answered' then
  local of = redis.call('HGET', KEYS[1], 'trouble_of') or ''
  if of ~= '' and address ~= '' and of ~= address then
    redis.call('HDEL', KEYS[1], 'trouble') -- that was another address
  end
  note_trouble(KEYS[1], 'trouble', ARGV[7], ARGV[3], tonumber(ARGV[8]))
  redis.call('HSET', KEYS[1], 'trouble_of', address)
end
if word == 'none' then
  if is_probe then
    redis.call('DEL', KEYS[2]) -- another send may be the probe
  end
  return ''
end
if word == 'ok' then
  redis.call('HSET', KEYS[1], 'last_success', now)
end
if mark and (address == '' or mark.of == address) then
  return '' -- the sink is disabled: a send that was under way changes nothing
end
if word == 'gone' then
  close()
  redis.call('HSET', KEYS[1], 'disabled', cjson.encode({ reason = ARGV[3], sinceMs = now, of = address }))
  return 'disabled'
end
if word == 'ok' then
  redis.call('HDEL', KEYS[1], 'disabled') -- that was another address, which may be used again
end
if word == 'ok' or word == 'answered' then
  if state[1] and ARGV[5] == '' then
    return 'open' -- sent before the circuit opened
  end
  if word == 'ok' then
    redis.call('HDEL', KEYS[1], 'trouble')
  end
  close() -- also by a probe whose lease ended while it waited for the sink's pace
  return state[1] and 'closed' or ''
end

if ARGV[9] == 'first' then
  redis.call('HINCRBY', KEYS[1], 'messages', 1)
end
if tonumber(ARGV[11] or '0') > 0 then
  redis.call('HINCRBY', KEYS[1], 'parts', ARGV[11])
end
local faults = redis.call('HINCRBY', KEYS[1], 'faults', 1)
if state[1] and not (is_probe and now >= math.min(believable(state[1]), believable(state[4] or state[1]))) then
  return 'open' -- sent before the circuit opened, or a probe whose lease is over
elseif not state[1] and word == 'fault' and faults < 5 then
  return ''
end
local openings = redis.call('HINCRBY', KEYS[1], 'openings', 1)
local open_until = now + math.min(tonumber(ARGV[4]) * 2 ^ (openings - 1), longest_pause)
redis.call('HSET', KEYS[1], 'until', string.format('%d', open_until))
if ARGV[9] == '' then
  redis.call('HDEL', KEYS[1], 'untried_at')
elseif ARGV[9] == 'first' or not state[4] then
  redis.call('HSET', KEYS[1], 'untried_at', string.format('%d', now + tonumber(ARGV[4])))
end
if tonumber(redis.call('HGET', KEYS[1], 'opened_at') or 'inf') > now then
  redis.call('HSET', KEYS[1], 'opened_at', now) -- or the clock was set back since
end
redis.call('DEL', KEYS[2])
return 'opened ' .. string.format('%d', open_until)
