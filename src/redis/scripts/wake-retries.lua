#!lua flags=allow-oom
-- Makes due now what waits because its sink or destination failed, tried or not. Retries that the
-- sink itself put off or refused keep their time. Given destinations, it does so only where nothing
-- of theirs is being sent or due soon.
-- KEYS[1]  the account's base
-- ARGV     sink, how many at most, where the last call ended ('': begin), of which destinations
--          (none: of all)
-- Returns  {where it ended ('': nothing is behind), whether something of theirs is due soon (1 | 0),
--          the refs that it made due, the earliest due first}
-- @include lib/ledger.lua

local keeps_its_time = { rate_limited = true, rejected = true }
local wanted = {}
for i = 4, #ARGV do
  wanted[ARGV[i]] = true
end

local is_probe = false

local function waits_for_its_sink(holder, ref, at)
  if not holder or (next(wanted) and not wanted[holder.d]) then
    return false
  elseif next(wanted) and at <= now + 30000 then
    is_probe = holder.st ~= 'held'
    return false
  elseif holder.st == 'queued' and holder.d and not holder.un then
    return redis.call('HEXISTS', key('claims'), ref) == 0 -- put off untried
  end
  local past = holder.st == 'retrying' and holder.h
  local last = past and past[#past]
  return last and not keeps_its_time[last.r]
end

local function wake_one(ref, at)
  local place, rank = split_ref(ref), nil
  if place[1] == 'i' then
    local record = load_record(place[2])
    local item = record and record.i[tonumber(place[3]) + 1]
    if not waits_for_its_sink(item, ref, at) then
      return false
    end
    item.at = now
    rank = item.rk
    save_record(place[2], record)
  else
    local text = place[1] == 'b' and redis.call('GET', key('batch', place[2]))
    local batch = text and cjson.decode(text) or place[1] == 'c' and { d = ARGV[1] }
    if not waits_for_its_sink(batch, ref, at) then
      return false
    end
    rank = batch.rk
  end
  wake(ref, now, rank)
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
  if is_probe or #woken >= most then
    break
  end
end
local is_end = #found < 2 * looked and #woken < most
return { is_end and '' or last, is_probe and 1 or 0, unpack(woken) }
