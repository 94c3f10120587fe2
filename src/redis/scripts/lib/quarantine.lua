-- Removes an entry of the quarantine. Its item's fingerprints stay, so it is not reported again.
local function close_entry(id)
  local text = redis.call('HGET', key('quarantine'), id)
  local uid = text and cjson.decode(text).uid
  redis.call('HDEL', key('quarantine'), id)
  redis.call('ZREM', key('quarantine-ages'), id)
  redis.call('HDEL', key('quarantine-feeds'), id)
  if uid and redis.call('HGET', key('quarantine-uids'), uid) == id then
    redis.call('HDEL', key('quarantine-uids'), uid)
  end
end
