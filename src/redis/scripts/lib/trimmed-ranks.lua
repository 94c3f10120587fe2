-- The severity of an event whose record retention dropped, kept as a fingerprint of its uid and
-- rank. Without it, an event that comes back more severe would be a plain duplicate.
local rank_words = { 'info', 'low', 'medium', 'high', 'critical' }
local mark_key = redis.call('GET', key('mark-key')) or ''

local function rank_mark(uid, rank)
  local digest = redis.sha1hex(mark_key .. 'rank' .. rank .. uid)
  local member = tonumber(string.sub(digest, 1, 13), 16) -- 52 bits: a Lua number holds them
  return { m = string.format('%.0f', member), b = tonumber(string.sub(digest, 14, 21), 16) }
end

-- A rank that the event had: one of at least `rank` if there was one, else the highest; nil if none
-- is known. That is enough to decide whether `rank` is more severe.
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
