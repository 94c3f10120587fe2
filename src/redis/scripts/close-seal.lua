#!lua flags=allow-oom
-- Ends the turn of one or more collections: what was sealed becomes one message, their timers go on.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: bid, retention, message? {k, d, kind, about, total, rr}, lead, members (number sealed here),
--          collections [{id, k (sink), claimed (ms), next (ms) | false (ends when nothing is in it), from?, told? (ms), note?}]
-- Returns  the message's ref, '' where there is none, or 'again' where members and count differ
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local lead = key('gather', ask.lead)
local ref = ask.message and ('b:' .. ask.bid .. ':' .. ask.message.k) or ''
if redis.call('HGET', lead, 'closed') == ask.bid then
  return ref
end
if redis.call('ZCARD', key('sealed', ask.bid)) ~= ask.members then
  return 'again'
end

local function go_on(collection)
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
    redis.call('HSET', name, 'flushed', now)
    redis.call('ZADD', key('timers'), is_urgent and math.min(set, collection.next) or collection.next, timer)
  elseif redis.call('ZCARD', key('collect', collection.id)) == 0 then
    redis.call('ZREM', key('timers'), timer)
    redis.call('DEL', name)
  else
    redis.call('ZADD', key('timers'), now, timer)
  end
end

redis.call('HSET', lead, 'closed', ask.bid)
for _, collection in ipairs(ask.collections) do
  go_on(collection)
end
if not ask.message then
  return ''
end
local m = ask.message
redis.call('SET', key('batch', ask.bid), cjson.encode({ k = m.k, d = m.d, kind = m.kind, about = m.about, total = m.total,
  n = 0, st = 'queued', c = now, rr = m.rr }))
wake(ref, now)
return ref
