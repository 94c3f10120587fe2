-- Reads the counters, the size of the index, and how far the counts by day are from the counters, at
-- the same time. Changes nothing.
-- KEYS[1]  the account's base
-- Returns  {time in ms, how many records the index has, JSON {sink: items that ended, less those
--          that the counts by day have} without those of 0, field, value, …}
-- @include lib/ledger.lua

local counters = redis.call('HGETALL', key('counters'))
local first, ended = nil, {}

local function add(sink, by)
  ended[sink] = (ended[sink] or 0) + by
end

for i = 1, #counters, 2 do
  local sink, counter = string.match(counters[i], '^s|([^|]+)|([^|]+)$')
  if counters[i] == 'first_day' then
    first = tonumber(counters[i + 1])
  elseif sink and final[counter] then
    add(sink, tonumber(counters[i + 1]))
  else
    sink = string.match(counters[i], '^past|(.+)$')
    if sink then
      add(sink, -tonumber(counters[i + 1]))
    end
  end
end
for day = first or 0, first and math.floor(now / day_ms) or -1 do
  each_ended(day, function(sink, count)
    add(sink, -count)
  end)
end
for sink, rest in pairs(ended) do
  if rest == 0 then
    ended[sink] = nil
  end
end
local answer = { now, redis.call('ZCARD', key('records')), next(ended) and cjson.encode(ended) or '{}' }
for _, text in ipairs(counters) do
  answer[#answer + 1] = text
end
return answer
