-- What records cost Redis, in bytes. MEMORY USAGE does not count a
-- key's entries in the tables of keys and of expiry times (about 60 bytes).
local function weigh_key(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  return bytes and bytes + 60 or 0
end

local told_shares = {}

-- An event's share of what is kept of a message that told of it.
local function weigh_told(bid)
  if not told_shares[bid] then
    local text = redis.call('GET', key('told', bid))
    local told = text and cjson.decode(text)
    local total = told and (told.summary and told.summary.total or #told)
    told_shares[bid] = told and weigh_key(key('told', bid)) / math.max(1, total) or 0
  end
  return told_shares[bid]
end

-- With its entry in the index of records, about 130 bytes, and its ending, about 70.
local function weigh_record(rid, record)
  local bytes = weigh_key(key('rec', rid)) + weigh_key(key('pay', rid)) + 200
  for _, item in ipairs(record and record.i or {}) do
    bytes = bytes + (item.b and weigh_told(item.b) or 0)
  end
  return bytes
end
