"""What operators steer gateways by: a hash in Redis with a version beside it, changed by
compare-and-set, and a log of who changed it."""

from typing import Final

LOG_LENGTH: Final = 200

# KEYS: hash, version, log. ARGV: the version that was seen, field, encoded change, whether the
# field is set to it (1) or deleted (0), log length, channel. Returns the new version; 0: somebody
# was quicker.
CHANGE_SCRIPT: Final = """
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return 0 end
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
else redis.call('HDEL', KEYS[1], ARGV[2]) end
redis.call('LPUSH', KEYS[3], ARGV[3])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
local version = redis.call('INCR', KEYS[2])
redis.call('PUBLISH', ARGV[6], version)
return version
"""
