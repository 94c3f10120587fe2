#!lua flags=allow-oom
-- Moves members of groups to where their verdict puts them: into the message that is being frozen,
-- to suppressed, or held until later.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: lead (group that is flushed), opened, seq (both as the flush was claimed), storm
--          (bool: the message covers several groups), bid, retention {history, payload} (ms), members
--          [{r (ref), a: keep | suppress | hold, o (keep: position), reason?, rule?, at?
--          (ms), place? (group)}]
-- Returns  1, or 0 if this flush is over and nothing was changed
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local lead = key('group', ask.lead)
local stands = redis.call('HMGET', lead, 'closed', 'opened', 'seq')
if stands[1] == ask.bid or stands[2] ~= ask.opened or tonumber(stands[3] or '0') ~= ask.seq then
  return 0
end
if ask.storm then
  redis.call('HSET', lead, 'storm', ask.bid)
end

local function keep(member, rid, n, record, item)
  move(item, 'batch')
  unwake(member.r)
  item.at = nil
  item.y = nil
  item.b = ask.bid
  put(key('members', ask.bid), member.r, member.o)
  save_record(rid, record)
end

for _, member in ipairs(ask.members) do
  local rid, n, record, item = load_item(member.r)
  if item and item.y and uncollect(item.y, member.r) then
    if member.a == 'keep' then
      keep(member, rid, n, record, item)
    else
      suppress_or_hold(rid, n, record, item, member, ask.retention)
    end
  end
end
return 1
