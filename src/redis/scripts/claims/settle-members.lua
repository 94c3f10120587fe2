#!lua flags=allow-oom
-- Settles up to `max` members of a summary whose outcome is known.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: bid, outcome, n (attempts), h? (their notes), rr? (lost answers), retention
--          {history, payload} (ms), max, part (other runs settle others of it)
-- Returns  how many are left
-- @include lib/ledger.lua
-- @include lib/attempts.lua

local ask = cjson.decode(ARGV[1])
local frozen = key('members', ask.bid)
local refs = redis.call('ZRANGE', frozen, 0, ask.max - 1)
for _, ref in ipairs(refs) do
  settle_member(ref, ask)
end
call_all('ZREM', frozen, refs, 1)
return redis.call('ZCARD', frozen)
