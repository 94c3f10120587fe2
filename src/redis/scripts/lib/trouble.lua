-- What is in the way of a feed or an account, as JSON in a field of a hash; see lib/trouble.ts.

-- Counts a failure. `wait`: ms until the next try; nil: not known.
local function note_trouble(name, field, reason, answer, wait)
  local known = redis.call('HGET', name, field)
  local trouble = known and cjson.decode(known) or { sinceMs = now, count = 0 }
  trouble.reason, trouble.answer = reason, answer
  trouble.sinceMs = math.min(trouble.sinceMs, now) -- or the clock was set back since
  trouble.lastMs, trouble.nextTryMs = now, wait and now + wait
  trouble.count = trouble.count + 1
  redis.call('HSET', name, field, cjson.encode(trouble))
end
