-- Weighs records with their payloads, in bytes that Redis needs. Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     story retention (ms), ids of records
-- Returns  {when it was settled (ms; -1: it is not, or it is gone), bytes, …} for each
-- @include lib/ledger.lua

local beside = 60 -- of each key: its places in the tables of keys and of times, which MEMORY USAGE leaves out

local function weigh(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  return bytes and bytes + beside or 0
end

-- What has no end to its time is not settled.
local function settled_at(name)
  local left = redis.call('PTTL', name)
  return left < 0 and -1 or now + left - tonumber(ARGV[1])
end

local answer = {}
for i = 2, #ARGV do
  answer[#answer + 1] = settled_at(key('rec', ARGV[i]))
  answer[#answer + 1] = weigh(key('rec', ARGV[i])) + weigh(key('pay', ARGV[i]))
end
return answer
