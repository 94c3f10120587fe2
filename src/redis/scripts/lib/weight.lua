-- What records cost Redis, in bytes. MEMORY USAGE does not count a
-- key's entries in the tables of keys and of expiry times (about 60 bytes).
local function weigh_key(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  return bytes and bytes + 60 or 0
end

-- With its entry in the index of records, about 130 bytes, its ending, about 70, and its part of what is
-- kept of a message, about 100.
local function weigh_record(rid)
  return weigh_key(key('rec', rid)) + weigh_key(key('pay', rid)) + 300
end
