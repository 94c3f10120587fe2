-- Forgets an entry of the quarantine; the marks of its item stay.
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
