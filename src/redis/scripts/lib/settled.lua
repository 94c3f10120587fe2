-- When a record was settled; nil where it is not, or is gone. By when its items ended: the time that it has
-- left goes by the retention.story of then. Read as text, since a walk looks at every record; only items have
-- a number under this name, and a quote within a text is escaped.
local function settled_at(rid)
  local name = key('rec', rid)
  if redis.call('PTTL', name) < 0 then
    return nil
  end
  local at = 0
  for ended in string.gmatch(redis.call('GET', name), '"e":(%d+)') do
    at = math.max(at, tonumber(ended))
  end
  return at > 0 and at or load_record(rid).t
end
