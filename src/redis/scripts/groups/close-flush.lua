#!lua flags=allow-oom
-- Closes the flush of one or more groups: the frozen members become one message, and each group's
-- timer is set to its next flush.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: bid, members (how many are frozen here),
--          message? {k (sink), d (destination), kind, about, total, rr, rk (rank)},
--          groups (groups; the first leads) [{id, opened, seq (both as the flush was claimed),
--          bid (of a message of its own), k (sink), claimed (ms, when the claim ends), next (ms) |
--          false (the group ends once it is empty), from?, told? (ms; events counted as sent until
--          then are dropped), note?}]
-- Returns  the message's ref, '' if there is no message or the flush is over, or 'again' if not so
--          many members are frozen
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local ref = ask.message and ('b:' .. ask.bid .. ':' .. ask.message.k) or ''

-- Whether the flush is the one that was claimed: another replica may have closed it meanwhile.
local function stands(group)
  local fields = redis.call('HMGET', key('group', group.id), 'opened', 'seq')
  return fields[1] == group.opened and tonumber(fields[2] or '0') == group.seq
end

-- Whether nothing ever joined the group in this account's ledger; a digest covers several of them.
local function is_empty(group)
  return not group.opened and redis.call('EXISTS', key('group', group.id)) == 0
end

local lead = ask.groups[1]
local is_closed = redis.call('HGET', key('group', lead.id), 'closed') == ask.bid
if is_closed or redis.call('EXISTS', key('batch', ask.bid)) == 1 then
  return ref -- done before, the reply was lost
end
if is_empty(lead) or not stands(lead) then
  return ''
end
if redis.call('ZCARD', key('members', ask.bid)) ~= ask.members then
  return 'again'
end

-- Whether another replica is freezing this group into a message of its own; closing that one sets
-- the timer.
local function is_taken(group)
  return group.bid ~= ask.bid and redis.call('EXISTS', key('members', group.bid)) == 1
end

local function go_on(group)
  if not stands(group) or is_taken(group) then
    return
  end
  local name, timer = key('group', group.id), 'c:' .. group.id .. ':' .. group.k
  redis.call('HINCRBY', name, 'seq', 1)
  if group.told then
    redis.call('ZREMRANGEBYSCORE', key('listed', group.id), '-inf', group.told)
  end
  if group.from then
    redis.call('HSET', name, 'from', group.from, 'note', group.note)
  end
  if group.next then
    local set = tonumber(redis.call('ZSCORE', key('timers'), timer) or group.claimed)
    local is_urgent = set < group.claimed -- a member joined that does not wait for the interval
    redis.call('ZADD', key('timers'), is_urgent and math.min(set, group.next) or group.next, timer)
  elseif redis.call('ZCARD', key('collect', group.id)) == 0 then
    redis.call('ZREM', key('timers'), timer)
    redis.call('DEL', name, key('listed', group.id))
  else
    local at = tonumber(redis.call('HGET', name, 'at')) or now -- of a held group: when the mute ends
    redis.call('ZADD', key('timers'), math.max(now, at), timer)
  end
end

redis.call('HSET', key('group', lead.id), 'closed', ask.bid)
for _, group in ipairs(ask.groups) do
  go_on(group)
end
if not ask.message then
  return ''
end
local m = ask.message
redis.call('SET', key('batch', ask.bid), cjson.encode({ k = m.k, d = m.d, kind = m.kind, about = m.about, total = m.total,
  n = 0, st = 'queued', c = now, rr = m.rr, rk = m.rk }))
wake(ref, now, m.rk)
return ref
