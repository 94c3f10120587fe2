#!lua flags=allow-oom
-- Takes members out of a sink's collection for its batch: not sent at all, or not before a time.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: sink, retention, members [{r (ref), a: suppress | hold, reason, rule, at?}]
-- Returns  how many were taken out
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local taken = 0
for _, member in ipairs(ask.members) do
  local place = split_ref(member.r)
  local rid, n = place[2], tonumber(place[3])
  local record = load_record(rid)
  local item = record and record.i[n + 1]
  if redis.call('ZREM', key('collect', ask.sink), member.r) == 1 and item and item.st == 'queued' then
    if member.a == 'hold' then
      hold(rid, n, item, member)
      save_record(rid, record)
    else
      suppress(rid, n, item, member.reason, member.rule)
      save_record(rid, record)
      rest(rid, record, ask.retention)
    end
    taken = taken + 1
  end
end
if redis.call('ZCARD', key('collect', ask.sink)) == 0 then
  unwake('c:' .. ask.sink)
end
return taken
