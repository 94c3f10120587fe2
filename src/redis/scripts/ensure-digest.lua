-- Sets a digest's timer where there is none or a later one, so that its first window begins now and its mail
-- comes though empty.
-- KEYS[1]  the account's base
-- ARGV     collection, sink, when it is due (ms), about (JSON), the caller's clock (ms),
--          note (what the first window does not count), when that window began (ms; none: with the collection)
-- Returns  nothing
-- @include lib/ledger.lua

local name = key('gather', ARGV[1])
redis.call('HSET', name, 'kind', 'digest', 'about', ARGV[4], 'wait', 0, 'at', ARGV[3])
redis.call('HSETNX', name, 'opened', ARGV[5])
if redis.call('HSETNX', name, 'from', ARGV[7] or redis.call('HGET', name, 'opened')) == 1 then
  redis.call('HSET', name, 'note', ARGV[6])
end
set_timer(ARGV[1], ARGV[2], tonumber(ARGV[3]), 'LT')
