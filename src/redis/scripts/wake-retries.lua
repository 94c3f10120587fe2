#!lua flags=allow-oom
-- Makes due now what waits because its sink or destination failed, tried or not. Retries that the
-- sink itself put off or refused keep their time.
-- KEYS[1]  the account's base
-- ARGV     sink, how many at most, of which destinations (none: of all)
-- Returns  their refs, the earliest due first
-- @include lib/ledger.lua

local keeps_its_time = { rate_limited = true, rejected = true }
local wanted = {}
for i = 3, #ARGV do
  wanted[ARGV[i]] = true
end

local function waits_for_its_sink(holder, ref)
  if not holder or (next(wanted) and not wanted[holder.d]) then
    return false
  elseif holder.st == 'queued' and holder.d and not holder.un then
    return redis.call('HEXISTS', key('claims'), ref) == 0 -- put off untried
  end
  local past = holder.st == 'retrying' and holder.h
  local last = past and past[#past]
  return last and not keeps_its_time[last.r]
end

local function wake_one(ref)
  local place, rank = split_ref(ref), nil
  if place[1] == 'i' then
    local record = load_record(place[2])
    local item = record and record.i[tonumber(place[3]) + 1]
    if not waits_for_its_sink(item, ref) then
      return false
    end
    item.at = now
    rank = item.rk
    save_record(place[2], record)
  else
    local text = redis.call('GET', key('batch', place[2]))
    local batch = text and cjson.decode(text)
    if not waits_for_its_sink(batch, ref) then
      return false
    end
    rank = batch.rk
  end
  wake(ref, now, rank)
  return true
end

local woken, passed, page = {}, 0, 500
repeat
  local found = redis.call('ZRANGEBYSCORE', key('due', ARGV[1]), '(' .. now, '+inf', 'LIMIT', passed, page)
  for _, ref in ipairs(found) do
    if #woken < tonumber(ARGV[2]) and wake_one(ref) then
      woken[#woken + 1] = ref
    else
      passed = passed + 1
    end
  end
until #found < page or #woken >= tonumber(ARGV[2]) or passed >= 10 * page
return woken
