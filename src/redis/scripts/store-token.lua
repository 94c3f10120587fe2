#!lua flags=allow-oom
-- Stores a new token unless one is there that stays valid longer, and releases the renewal lock if
-- the caller holds it.
-- KEYS[1]  the token: hash of sealed (encrypted), fp (fingerprint)
-- KEYS[2]  the renewal lock
-- ARGV     encrypted token, its fingerprint, ms that it stays valid, the caller's lock id
-- Returns  nothing
if redis.call('GET', KEYS[2]) == ARGV[4] then
  redis.call('DEL', KEYS[2])
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'sealed', ARGV[1], 'fp', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
