-- What records and entries of the quarantine cost Redis, in bytes. MEMORY USAGE does not count a
-- key's entries in the tables of keys and of expiry times (about 60 bytes).
local function weigh_key(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  return bytes and bytes + 60 or 0
end

-- With its entry in the index of records, about 130 bytes, and its ending, about 70.
local function weigh_record(rid)
  return weigh_key(key('rec', rid)) + weigh_key(key('pay', rid)) + 200
end

-- With its entries in the hash itself and in those of ages, feeds and uids, about 400 bytes.
local function weigh_entry(id)
  return redis.call('HSTRLEN', key('quarantine'), id) + 400
end
