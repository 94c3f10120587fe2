#!lua flags=allow-oom
-- Drops records that were settled before a time, with payload and letters. Runs when memory is full: it makes room.
-- KEYS[1]  the account's base
-- ARGV     settled before (ms), horizon of marks (ms), ids of records
-- Returns  {stories, payloads}: how many of each
-- @include lib/ledger.lua
-- @include lib/settled.lua
-- @include lib/marks.lua
-- @include lib/trimmed-ranks.lua

local before, horizon = tonumber(ARGV[1]), tonumber(ARGV[2])
local weeks = open_weeks(horizon)

local function drop_letters(rid, record)
  for i, item in ipairs(record.i) do
    if item.st == 'dead' then
      redis.call('ZREM', key('dead', item.k), item_ref(rid, i - 1, item))
    end
  end
end

local stories, payloads, latest = 0, 0, 0
for i = 3, #ARGV do
  local rid = ARGV[i]
  local at = settled_at(rid)
  if at and at < before then
    local record = load_record(rid)
    drop_letters(rid, record)
    write_mark(weeks, rank_mark(record.u, record.rk), horizon)
    latest = math.max(latest, record.t + 1)
    stories = stories + redis.call('DEL', key('rec', rid))
    payloads = payloads + redis.call('DEL', key('pay', rid))
  end
end
-- What was seen first later than this is all there: an audit compares no more than that.
if latest > tonumber(redis.call('GET', key('trimmed')) or '0') then
  redis.call('SET', key('trimmed'), string.format('%.0f', latest))
end
return { stories, payloads }
