-- Weighs the entries of the quarantine, in bytes that Redis needs. Changes nothing.
-- KEYS[1]  the account's base
-- Returns  {when it was set aside (ms), bytes, …} for each
-- @include lib/ledger.lua

local beside = 400 -- of each entry: its places in the table itself, and in those of ages, feeds and uids

local answer = {}
local entries = redis.call('ZRANGE', key('quarantine-ages'), 0, -1, 'WITHSCORES')
for i = 1, #entries, 2 do
  answer[#answer + 1] = tonumber(entries[i + 1])
  answer[#answer + 1] = redis.call('HSTRLEN', key('quarantine'), entries[i]) + beside
end
return answer
