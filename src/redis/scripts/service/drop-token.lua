#!lua flags=allow-oom
-- Deletes a token that the API refused, unless another one has taken its place.
-- KEYS[1]  the token
-- ARGV[1]  fingerprint of the refused token
-- Returns  nothing
if redis.call('HGET', KEYS[1], 'fp') == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
