-- How severe an event was whose record made room: a mark of its uid and rank, among all marks. Without it one
-- that comes back more severe would be a plain duplicate.
local rank_words = { 'info', 'low', 'medium', 'high', 'critical' }
local mark_key = redis.call('GET', key('mark-key')) or ''

local function rank_mark(uid, rank)
  local digest = redis.sha1hex(mark_key .. 'rank' .. rank .. uid)
  local member = tonumber(string.sub(digest, 1, 13), 16) -- 52 bits: a Lua number holds them
  return { m = string.format('%.0f', member), b = tonumber(string.sub(digest, 14, 21), 16) }
end

-- The highest rank that it had, as far as that decides whether one of `rank` is more severe; nil: not known.
local function trimmed_rank(weeks, uid, rank)
  for known = rank, #rank_words do
    if has_mark(weeks, rank_mark(uid, known)) then
      return known
    end
  end
  for known = rank - 1, 1, -1 do
    if has_mark(weeks, rank_mark(uid, known)) then
      return known
    end
  end
  return nil
end
