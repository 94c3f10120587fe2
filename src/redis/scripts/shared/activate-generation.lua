#!lua flags=allow-oom
-- Makes a configuration the active one, or confirms that it still is. An active configuration that no replica
-- confirmed within the patience gives way to any other. It takes over again once one does, if none was started since.
-- One that stood in for an hour on end is the newest itself: the newest was a replica that went away for good.
-- KEYS[1]  hash: hash, newest (hash of the one that was started last), number, confirmed (ms),
--          since (when that hash began to be confirmed without a gap, ms), confirmations, id (of the
--          ledger)
-- ARGV     hash of what the configuration does with events; verb (start: it takes over | confirm);
--          patience in ms; id for a ledger that has none yet
-- Returns  the configuration's number, which grows with the hash, or 0 if another one is active; when
--          the active one was confirmed before (ms), 0 if never; how many confirmations there were,
--          which a clock that is set back does not lower; the id, empty if there was none
-- @include lib/clock.lua

local fields = { 'hash', 'confirmed', 'number', 'confirmations', 'id', 'newest', 'since' }
local state = redis.call('HMGET', KEYS[1], unpack(fields))
local is_active = state[1] == ARGV[1]
local previous = tonumber(state[2] or '0')
local is_deserted = now > previous + tonumber(ARGV[3])
local number = tonumber(state[3] or '0')
local confirmations = tonumber(state[4] or '0')
local id = state[5] or ''
local since = is_active and not is_deserted and math.min(now, tonumber(state[7] or now)) or now
local has_stayed = now - since >= 3600000
local newest = (ARGV[2] == 'start' or has_stayed) and ARGV[1] or state[6] or ARGV[1]

if not is_active then
  if newest ~= ARGV[1] and not is_deserted then
    return { 0, previous, confirmations, id }
  end
  number = number + 1
end
redis.call('HSET', KEYS[1], 'hash', ARGV[1], 'newest', newest, 'number', number, 'confirmed', now)
redis.call('HSET', KEYS[1], 'confirmations', confirmations + 1, 'since', since)
redis.call('HSETNX', KEYS[1], 'id', ARGV[4])
return { number, previous, confirmations, id }
