#!lua flags=allow-oom
-- Forgets a token that the service refused, unless another one has taken its place.
-- KEYS[1]  the token
-- ARGV[1]  fingerprint of the refused one
-- Returns  1: forgotten; 0: another one is there, or none
if redis.call('HGET', KEYS[1], 'fp') ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
