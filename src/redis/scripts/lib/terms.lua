-- Which records concern an identifier, a login or a host; terms are {k (kind), t (digest), b (bucket)}.
-- Logins and hosts are in hashes of two generations, each as long as the history; a field is a digest, its
-- value "<in how many records> <when the last was first seen, s> <the last record>".

-- Notes a record for an identifier: one entry holds all records of a script. What ended before `from` (ms) is
-- forgotten.
local identified = {}
local function note_identifier(rid, term, from, history)
  local name = key('of', term.t)
  local noted = identified[name]
  if not noted then
    noted = {}
    identified[name] = noted
    unit.at_end[#unit.at_end + 1] = function()
      append(name, { 'MINID', '~', string.format('%.0f', math.max(0, from)) }, { 'r', table.concat(noted, ' ') })
      redis.call('PEXPIRE', name, history)
    end
  end
  noted[#noted + 1] = rid
end

-- The generation before holds something only if the account's counts begin before this one.
local oldest_generation
local function first_generation(generation, history)
  if not oldest_generation then
    local first = redis.call('HGET', key('counters'), 'first_day')
    local is_older = first and tonumber(first) * day_ms < generation * history
    oldest_generation = is_older and generation - 1 or generation
  end
  return oldest_generation
end

-- What is known of a login or host: {n, at (ms), r}; nil: it was not seen within the history.
local function recall(term, history)
  local generation = math.floor(now / history)
  for place = generation, first_generation(generation, history), -1 do
    local text = redis.call('HGET', key('seen', place, term.b), term.t)
    local count, seconds, last = string.match(text or '', '^(%d+) (%d+) (%x+)$')
    if count then
      local past = { n = tonumber(count), at = tonumber(seconds) * 1000, r = last }
      return past.at >= now - history and past or nil
    end
  end
end

-- Notes a record for a login or host, and in the record what was known. `is_late`: messages have begun to
-- say what was, and do not say this, nor what a later event named. Safe to run twice.
local function note_victim(rid, record, term, history, is_late)
  local past = recall(term, history)
  if past and past.r == rid then
    return
  end
  if past then
    record.sb = record.sb or {}
    record.sb[#record.sb + 1] = { k = term.k, t = term.t, n = past.n, at = past.at, r = past.r, l = is_late or past.at > record.t or nil }
  end
  local seconds = math.floor(math.max(record.t, past and past.at or 0) / 1000)
  local name = key('seen', math.floor(now / history), term.b)
  local added = redis.call('HSET', name, term.t, string.format('%.0f %.0f %s', (past and past.n or 0) + 1, seconds, rid))
  if added == 1 and redis.call('HLEN', name) == 1 then
    redis.call('PEXPIRE', name, 2 * history)
  end
end
