#!lua flags=allow-oom
-- Stores a new token unless one is there that stays valid longer.
-- KEYS[1]  the token: hash of sealed (encrypted), fp (fingerprint)
-- ARGV     encrypted token, its fingerprint, ms that it stays valid
-- Returns  nothing
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'sealed', ARGV[1], 'fp', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
