-- Finds refs in a set that have no effect there: what they name is gone, or in another state.
-- Changes nothing.
-- KEYS[1]  the account's base
-- ARGV     place (due | timers | dead | collect), name ('' | sink | group), refs
-- Returns  {ref, gone | other_state | unfiled (its record is not in the index), …}
-- @include lib/ledger.lua

local place, name = ARGV[1], ARGV[2]
local set = name == '' and key(place) or key(place, name)

local function is_listed(ref)
  return redis.call('ZSCORE', set, ref) and true or false
end

local fits = {
  due = function(item)
    return not final[item.st] and item.st ~= 'batch' and (not item.y or item.why == 'detail')
  end,
  dead = function(item)
    return item.st == 'dead'
  end,
  collect = function(item)
    return not final[item.st] and (item.y or item.k) == name
  end,
}

-- A dead letter ends with its record. Its event may have come again since, as a new record.
local function has_ended(ref, record)
  return place == 'dead' and (not record or record.t > tonumber(redis.call('ZSCORE', set, ref)))
end

local function of_item(ref, rid, n)
  local record = load_record(rid)
  if has_ended(ref, record) then
    return nil
  end
  local item = record and record.i[n + 1]
  if not item then
    return 'gone'
  end
  if not redis.call('ZSCORE', key('records'), rid) then
    return 'unfiled'
  end
  return not fits[place](item) and 'other_state' or nil
end

local function problem_of(ref)
  local parts = split_ref(ref)
  if parts[1] == 'i' then
    return of_item(ref, parts[2], tonumber(parts[3]))
  end
  local target = parts[1] == 'b' and 'batch' or (place == 'timers' and 'group' or 'collect')
  return redis.call('EXISTS', key(target, parts[2])) == 0 and 'gone' or nil
end

local found = {}
for i = 3, #ARGV do
  local problem = is_listed(ARGV[i]) and problem_of(ARGV[i])
  if problem then
    found[#found + 1] = ARGV[i]
    found[#found + 1] = problem
  end
end
return found
