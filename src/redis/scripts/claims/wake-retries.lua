#!lua flags=allow-oom
-- Makes due now what waits because its sink or destination failed, tried or not. Retries that the
-- sink itself put off or refused keep their time unless all are wanted. Given destinations, what of
-- theirs is being sent, or due within half a minute, counts as made due.
-- KEYS[1]  the account's base
-- ARGV     sink, how many at most, where the last call ended ('': begin), whether all (1, 0), of which
--          destinations (none: of all)
-- Returns  {where it ended ('': nothing is behind), their refs, the earliest due first}
-- @include lib/ledger.lua

local keeps_its_time = ARGV[4] == '1' and {} or { rate_limited = true, rejected = true }
local wanted = {}
for i = 5, #ARGV do
  wanted[ARGV[i]] = true
end

local function waits_for_its_sink(holder, ref)
  if holder.st == 'queued' and holder.d and not holder.un then
    return redis.call('HEXISTS', key('claims'), ref) == 0 -- put off untried
  end
  local past = holder.st == 'retrying' and holder.h
  local last = past and past[#past]
  return last and not keeps_its_time[last.r]
end

local function wake_one(ref, at)
  local rid, _, record, holder = load_item(ref)
  local place = split_ref(ref)
  if place[1] == 'b' then
    local text = redis.call('GET', key('batch', place[2]))
    holder = text and cjson.decode(text)
  elseif place[1] == 'c' then
    holder = { d = ARGV[1] } -- what a sink collects
  end
  if not holder or (next(wanted) and not wanted[holder.d]) then
    return false
  elseif next(wanted) and at <= now + 30000 then
    return holder.st ~= 'held'
  elseif not waits_for_its_sink(holder, ref) then
    return false
  end
  if record then
    holder.at = now
    save_record(rid, record)
  end
  wake(ref, now, holder.rk)
  return true
end

local due, most, place, looked = key('due', ARGV[1]), tonumber(ARGV[2]), ARGV[3], 500
if place == '' then
  place = next(wanted) and '0' or string.format('%.0f', now)
end
local from = count_up_to(due, place)
local found = redis.call('ZRANGE', due, from, from + looked - 1, 'WITHSCORES')
local woken, last = {}, nil
for i = 1, #found, 2 do
  last = string.format('%.0f ', found[i + 1]) .. found[i]
  if wake_one(found[i], tonumber(found[i + 1])) then
    woken[#woken + 1] = found[i]
  end
  if #woken >= most then
    break
  end
end
return { #found < 2 * looked and #woken < most and '' or last, unpack(woken) }
