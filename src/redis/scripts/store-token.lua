#!lua flags=allow-oom
-- Keeps a new token unless a newer one is there, and opens the renewal lock if it is ours.
-- KEYS[1]  the token: hash of sealed, fp
-- KEYS[2]  the renewal lock
-- ARGV     sealed token, its fingerprint, ms that it stays valid, our lock id
-- Returns  nothing
if redis.call('GET', KEYS[2]) == ARGV[4] then
  redis.call('DEL', KEYS[2])
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('HSET', KEYS[1], 'sealed', ARGV[1], 'fp', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
