#!lua flags=allow-oom
-- Claims a group's timer for the length of a lease, so that one replica flushes the group.
-- KEYS[1]  the account's base
-- ARGV     timer (c:<group>:<sink>), the caller's clock in ms, lease in ms
-- Returns  JSON {due (ms), kind?, about?, seq, opened?, from?, note?, storm?, asked?}, or '' if it
--          is not due or claimed by another replica
-- @include lib/ledger.lua

local timer, at, lease = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local due = tonumber(redis.call('ZSCORE', key('timers'), timer) or 'inf')
if due > at then
  return ''
end
redis.call('ZADD', key('timers'), 'XX', at + lease, timer)
local fields = redis.call('HMGET', key('group', split_ref(timer)[2]), 'kind', 'about', 'seq', 'opened', 'from', 'note', 'storm', 'asked')
return cjson.encode({ due = due, kind = fields[1] or nil, about = fields[2] or nil, seq = tonumber(fields[3] or '0'),
  opened = tonumber(fields[4] or nil), from = tonumber(fields[5] or nil), note = fields[6] or nil,
  storm = fields[7] or nil, asked = tonumber(fields[8] or nil) })
