#!lua flags=allow-oom
-- Decides how many group messages a destination may get now: a burst, then one per refill time.
-- KEYS[1]  the account's base
-- ARGV     destination, wanted, burst, refill in ms
-- Returns  {granted (all that were wanted, 1: all groups in one message, or 0), ms until the next
--          one}
-- @include lib/ledger.lua

local name, wanted, burst, refill = key('flushes', ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
-- stored is when the bucket will be full again, which tells how much is in it
local full_at = math.max(tonumber(redis.call('GET', name) or '0'), now)
full_at = math.min(full_at, now + burst * refill) -- a clock may be set back
local left = burst - math.ceil((full_at - now) / refill)
local granted = 0
if wanted <= left then
  granted = wanted
elseif left >= 1 then
  granted = 1
end
if granted > 0 then
  redis.call('SET', name, string.format('%.0f', full_at + granted * refill), 'PX', (burst + 1) * refill)
end
return { granted, math.max(0, full_at - now - (burst - 1) * refill) }
