#!lua flags=allow-oom
-- Ends the turn of one or more collections: what was sealed becomes one message, their timers go on.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: bid, message? {k, d, kind, about, total, rr, rk (rank)}, members (number sealed here), collections (the first
--          leads) [{id, opened, seq (as its turn was claimed), bid (of a message of its own), k (sink), claimed (ms),
--          next (ms) | false (ends when nothing is in it), from?, told? (ms), note?}]
-- Returns  the message's ref, '' where there is none, or 'again' where members and count differ
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local ref = ask.message and ('b:' .. ask.bid .. ':' .. ask.message.k) or ''

-- Whether the turn is the one that was claimed: another replica may have ended it meanwhile.
local function stands(collection)
  local fields = redis.call('HMGET', key('gather', collection.id), 'opened', 'seq')
  return fields[1] == collection.opened and tonumber(fields[2] or '0') == collection.seq
end

-- Nothing was ever collected here: one of several books of a digest.
local function is_empty(collection)
  return not collection.opened and redis.call('EXISTS', key('gather', collection.id)) == 0
end

local lead = ask.collections[1]
local is_closed = redis.call('HGET', key('gather', lead.id), 'closed') == ask.bid
if is_closed or redis.call('EXISTS', key('batch', ask.bid)) == 1 then
  return ref -- the reply was lost
end
if is_empty(lead) or not stands(lead) then
  return ''
end
if redis.call('ZCARD', key('sealed', ask.bid)) ~= ask.members then
  return 'again'
end

-- A collection of which another replica is making a message of its own goes on when that is done.
local function is_taken(collection)
  return collection.bid ~= ask.bid and redis.call('EXISTS', key('sealed', collection.bid)) == 1
end

local function go_on(collection)
  if not stands(collection) or is_taken(collection) then
    return
  end
  local name, timer = key('gather', collection.id), 'c:' .. collection.id .. ':' .. collection.k
  redis.call('HINCRBY', name, 'seq', 1)
  if collection.told then
    redis.call('ZREMRANGEBYSCORE', key('told', collection.id), '-inf', collection.told)
  end
  if collection.from then
    redis.call('HSET', name, 'from', collection.from, 'note', collection.note)
  end
  if collection.next then
    local set = tonumber(redis.call('ZSCORE', key('timers'), timer) or collection.claimed)
    local is_urgent = set < collection.claimed -- something came meanwhile that does not wait for the interval
    redis.call('ZADD', key('timers'), is_urgent and math.min(set, collection.next) or collection.next, timer)
  elseif redis.call('ZCARD', key('collect', collection.id)) == 0 then
    redis.call('ZREM', key('timers'), timer)
    redis.call('DEL', name, key('told', collection.id))
  else
    local at = tonumber(redis.call('HGET', name, 'at')) or now -- of a mute: when it ends
    redis.call('ZADD', key('timers'), math.max(now, at), timer)
  end
end

redis.call('HSET', key('gather', lead.id), 'closed', ask.bid)
for _, collection in ipairs(ask.collections) do
  go_on(collection)
end
if not ask.message then
  return ''
end
local m = ask.message
redis.call('SET', key('batch', ask.bid), cjson.encode({ k = m.k, d = m.d, kind = m.kind, about = m.about, total = m.total,
  n = 0, st = 'queued', c = now, rr = m.rr, rk = m.rk }))
wake(ref, now, m.rk)
return ref
