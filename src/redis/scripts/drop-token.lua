#!lua flags=allow-oom
-- Forgets a token that the service refused, unless another one has taken its place.
-- KEYS[1]  the token
-- ARGV[1]  fingerprint of the refused one
-- Returns  nothing
if redis.call('HGET', KEYS[1], 'fp') == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
