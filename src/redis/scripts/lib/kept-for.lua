-- How long (ms) settled records are certain to exist. Records settled under an earlier, shorter
-- retention.history still expire by that one, so it counts until the last of them has expired.
local function kept_for(history)
  local past = redis.call('HMGET', key('kept-for'), 'history', 'shorter', 'until')
  local is_shorter = past[2] and tonumber(past[3]) > now
  return math.min(history, tonumber(past[1] or history), is_shorter and tonumber(past[2]) or history)
end

local function note_retention(history)
  local past = tonumber(redis.call('HGET', key('kept-for'), 'history') or history)
  if past < history then
    redis.call('HSET', key('kept-for'), 'shorter', kept_for(history), 'until', now + past)
  end
  redis.call('HSET', key('kept-for'), 'history', history)
end
