-- Weighs records with their payloads, in bytes that Redis needs. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     ids of records
-- Returns  {when it was settled (ms; -1: it is not, or it is gone), bytes, …} for each
-- @include lib/ledger.lua
-- @include lib/settled.lua

local beside = 60 -- of each key: its places in the tables of keys and of times, which MEMORY USAGE leaves out

local function weigh(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  return bytes and bytes + beside or 0
end

local answer = {}
for _, rid in ipairs(ARGV) do
  answer[#answer + 1] = settled_at(rid) or -1
  answer[#answer + 1] = weigh(key('rec', rid)) + weigh(key('pay', rid))
end
return answer
