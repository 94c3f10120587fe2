#!lua flags=allow-oom
-- Counts the open entries of the quarantine by the feed that set them aside.
-- KEYS[1]  the account's base
-- ARGV     retention.history ms, from when an entry counts as fresh (ms)
-- Returns  {feed, open, fresh, when the newest was set aside (ms), …}
-- @include lib/ledger.lua

local feeds = key('quarantine-feeds')
local entries = redis.call('ZRANGEBYSCORE', key('quarantine-ages'), '(' .. now - tonumber(ARGV[1]), '+inf', 'WITHSCORES')
local counts = {}
local names = {}

for i = 1, #entries, 2 do
  local feed, at = redis.call('HGET', feeds, entries[i]), tonumber(entries[i + 1])
  if feed then
    if not counts[feed] then
      counts[feed] = { open = 0, fresh = 0, newest = 0 }
      names[#names + 1] = feed
    end
    local count = counts[feed]
    count.open = count.open + 1
    count.fresh = count.fresh + (at >= tonumber(ARGV[2]) and 1 or 0)
    count.newest = math.max(count.newest, at)
  end
end

local answer = {}
for _, feed in ipairs(names) do
  local count = counts[feed]
  for _, value in ipairs({ feed, tostring(count.open), tostring(count.fresh), string.format('%.0f', count.newest) }) do
    answer[#answer + 1] = value
  end
end
return answer
