-- Removes an entry of the quarantine. Its item's fingerprints stay, so it is not reported again.
local function close_entry(id)
  local text = redis.call('HGET', key('quarantine'), id)
  if text then
    redis.call('HDEL', key('quarantine'), id)
    redis.call('ZREM', key('quarantine-ages'), id .. ' ' .. cjson.decode(text).feed)
  end
end
