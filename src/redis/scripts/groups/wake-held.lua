#!lua flags=allow-oom
-- Makes all muted groups due now, so that they are checked again: under another configuration the
-- mute may be over, or end at another time.
-- KEYS[1]  the account's base
-- ARGV     the caller's clock in ms
-- Returns  nothing
-- @include lib/ledger.lua

for _, timer in ipairs(redis.call('ZRANGEBYSCORE', key('timers'), '(' .. ARGV[1], '+inf')) do
  if redis.call('HGET', key('group', split_ref(timer)[2]), 'kind') == 'held' then
    redis.call('ZADD', key('timers'), ARGV[1], timer)
  end
end
