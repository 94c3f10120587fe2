#!lua flags=allow-oom
-- Deletes a frozen message once all its members are settled or taken out of it. What it said of
-- them, if it was sent, is kept as long as their contents.
-- KEYS[1]  the account's base
-- ARGV     its ref, retention.payload (ms)
-- Returns  nothing
-- @include lib/ledger.lua
-- @include lib/attempts.lua

-- Whether it reads as the message of its one event alone.
local function is_sole(message)
  return message.total == 1 and message.kind ~= 'digest' and not cjson.decode(message.about).summary.divertedFrom
end

local bid = split_ref(ARGV[1])[2]
unwake(ARGV[1])
local text = redis.call('GET', key('batch', bid))
local message = text and cjson.decode(text)
if message and message.o and message.about and not is_sole(message) then
  keep_told(bid, message.about, tonumber(ARGV[2]))
end
redis.call('DEL', key('batch', bid))
