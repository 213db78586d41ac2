"""Fleet state set by operators: a hash in Redis, its version and a log of changes.

Changes use compare-and-set on the version. Gateways follow them.
"""

from typing import Final

LOG_LENGTH: Final = 200

# KEYS: hash, version, log. ARGV: the expected version, field, encoded change, 1 to set the field or
# 0 to delete it, log length, channel. Returns the new version, or 0 if the version has changed.
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
