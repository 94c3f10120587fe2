-- How long (ms) settled records are certain to exist. Records settled under an earlier, shorter
-- retention.story still expire by that one, so it counts until the last of them has expired.
local function kept_for(story)
  local past = redis.call('HMGET', key('kept-for'), 'story', 'shorter', 'until')
  local is_shorter = past[2] and tonumber(past[3]) > now
  return math.min(story, tonumber(past[1] or story), is_shorter and tonumber(past[2]) or story)
end

local function note_retention(story)
  local past = tonumber(redis.call('HGET', key('kept-for'), 'story') or story)
  if past < story then
    redis.call('HSET', key('kept-for'), 'shorter', kept_for(story), 'until', now + past)
  end
  redis.call('HSET', key('kept-for'), 'story', story)
end
