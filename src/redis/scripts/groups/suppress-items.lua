#!lua flags=allow-oom
-- Suppresses items that are about to be sent, or holds them until a time. A single item that was
-- tried once is left alone.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: sink? (the items wait in its batch; without it they are single), retention {history,
--          payload} (ms), members [{r (ref), a: suppress | hold, reason, rule, at? (ms) and
--          place? (group) of hold}]
-- Returns  the refs that were suppressed or held
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])

local function is_waiting(ref, item)
  if ask.sink then
    return uncollect(ask.sink, ref) and item and item.st == 'queued'
  end
  return item and item.n == 0 and not item.y and item.st == 'queued'
end

local suppressed = {}
for _, member in ipairs(ask.members) do
  local rid, n, record, item = load_item(member.r)
  if is_waiting(member.r, item) then
    suppress_or_hold(rid, n, record, item, member, ask.retention)
    suppressed[#suppressed + 1] = member.r
  end
end
if ask.sink then
  end_empty_batch(ask.sink)
end
return suppressed
