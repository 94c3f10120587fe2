#!lua flags=allow-oom
-- Makes a configuration the active one, or confirms that it still is. An active configuration that
-- no replica confirmed within the patience gives way to any other, and takes over again once one
-- does, if none was started since. One that stood in for an hour on end is the newest itself: the
-- newest was a replica that went away for good.
-- KEYS[1]  hash: hash, newest (hash of the one that was started last), number, confirmed (ms),
--          since (when that hash began to be confirmed without a gap, ms), confirmations, digest,
--          revision, id (of the ledger)
-- ARGV     hash of what the configuration does with events; verb (start: it takes over | confirm);
--          patience in ms; digest of all that it says, empty if it cannot be known; id for a
--          ledger that has none yet
-- Returns  the configuration's number, which grows with the hash, or 0 if another one is active; its
--          revision, which grows with the digest too, or 0 if another one has the same hash; when
--          the active one was confirmed before (ms), 0 if never; how many confirmations there were,
--          which a clock that is set back does not lower; the id, empty if there was none
-- @include lib/clock.lua

local fields = { 'hash', 'confirmed', 'number', 'digest', 'revision', 'confirmations', 'id', 'newest', 'since' }
local state = redis.call('HMGET', KEYS[1], unpack(fields))
local is_active = state[1] == ARGV[1]
local previous = tonumber(state[2] or '0')
local is_deserted = now > previous + tonumber(ARGV[3])
local number = tonumber(state[3] or '0')
local revision = tonumber(state[5] or state[3] or '0')
local confirmations = tonumber(state[6] or '0')
local id = state[7] or ''
local since = is_active and not is_deserted and math.min(now, tonumber(state[9] or now)) or now
local has_stayed = now - since >= 3600000
local newest = (ARGV[2] == 'start' or has_stayed) and ARGV[1] or state[8] or state[1] or ARGV[1]
local is_same = is_active and (ARGV[4] == '' or ARGV[4] == (state[4] or ARGV[4]))

if not is_active then
  if newest ~= ARGV[1] and not is_deserted then
    return { 0, 0, previous, confirmations, id }
  end
  number = number + 1
end
if not is_active or (ARGV[2] == 'start' and not is_same) then
  revision = revision + 1
  is_same = true
end
redis.call('HSET', KEYS[1], 'hash', ARGV[1], 'newest', newest, 'number', number, 'confirmed', now)
redis.call('HSET', KEYS[1], 'confirmations', confirmations + 1, 'since', since)
redis.call('HSETNX', KEYS[1], 'id', ARGV[5])
if is_same then
  redis.call('HSET', KEYS[1], 'revision', revision)
  if ARGV[4] ~= '' then
    redis.call('HSET', KEYS[1], 'digest', ARGV[4])
  end
end
return { number, is_same and revision or 0, previous, confirmations, id }
