-- What records and entries of the quarantine take, in bytes that Redis needs: MEMORY USAGE leaves out the places of
-- a key in the tables of keys and of times; the index takes about 130 a record.
local function weigh_key(name)
  local bytes = redis.call('MEMORY', 'USAGE', name)
  return bytes and bytes + 60 or 0
end

local function weigh_record(rid)
  return weigh_key(key('rec', rid)) + weigh_key(key('pay', rid)) + 130
end

-- Its places in the table itself, and in those of ages, feeds and uids: about 400.
local function weigh_entry(id)
  return redis.call('HSTRLEN', key('quarantine'), id) + 400
end
