#!lua flags=allow-oom
-- Opens a digest before it has members, so that its first window begins now and an empty digest is
-- sent, too. A window that begins later than now, because a clock was set back, begins now. Sets its
-- timer unless there is an earlier one.
-- KEYS[1]  the account's base
-- ARGV     group, sink, when it is due (ms), about (JSON), the caller's clock (ms), note (counters
--          at the window's begin), when the window began (ms; without it when the group opened)
-- Returns  nothing
-- @include lib/ledger.lua

local name = key('group', ARGV[1])
redis.call('HSET', name, 'kind', 'digest', 'about', ARGV[4], 'wait', 0, 'at', ARGV[3])
redis.call('HSETNX', name, 'opened', ARGV[5])
local from = tonumber(redis.call('HGET', name, 'from'))
if not from or (not ARGV[7] and from > tonumber(ARGV[5])) then
  local begin = ARGV[7] or (from and ARGV[5]) or redis.call('HGET', name, 'opened')
  redis.call('HSET', name, 'from', begin, 'note', ARGV[6])
end
set_timer(ARGV[1], ARGV[2], tonumber(ARGV[3]), 'LT')
