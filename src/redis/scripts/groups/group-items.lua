#!lua flags=allow-oom
-- Moves single items for people into groups, so that they go out in one message. A canary stays
-- single, and so does what left a refused message: it may be to blame, and would be for its company.
-- KEYS[1]  the account's base
-- ARGV[1]  JSON: members [ref], places {destination: group}
-- Returns  how many were moved
-- @include lib/ledger.lua

local ask = cjson.decode(ARGV[1])
local single = { queued = true, retrying = true }
local moved = 0
for _, ref in ipairs(ask.members) do
  local rid, n, record, item = load_item(ref)
  local group = item and ask.places[item.d]
  if group and single[item.st] and not item.y and not item.alone and shown_of(rid).ty ~= 'canary' then
    open_group(group)
    item.y = group.id
    item.ug = group.urgent or nil
    join_group(rid, n, item)
    save_record(rid, record)
    moved = moved + 1
  end
end
return moved
