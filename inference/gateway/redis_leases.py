"""The store of the leases: Redis, in one call for all buckets of a request."""

from collections.abc import Sequence
from typing import Any, Final, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError

from inference.gateway.leases import Grant, Want

# KEYS: the buckets. ARGV for each: capacity, interval in microseconds (0: what is spent does not
# come back), units wanted (below 0: given back), seconds to keep what does not come back.
# Answers for each: units granted, microseconds until one more could be had.
# Redis's own clock counts, so that the gateways' may differ. One that was set back cannot leave a
# bucket emptier than empty. Numbers of this size need a format: Lua writes 14 digits by default.
TAKE_SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local answers = {}

local function of_rate(key, capacity, interval, wanted)
  local span = capacity * interval
  local full_at = tonumber(redis.call('GET', key) or '0')
  full_at = math.max(now, math.min(full_at, now + span))
  local free = math.floor((now + span - full_at) / interval + 1e-6)
  local granted = math.min(wanted, free)
  full_at = math.max(now, full_at + granted * interval)
  if full_at > now then
    redis.call('SET', key, string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
  else
    redis.call('DEL', key)
  end
  return granted, math.max(0, full_at + interval - span - now)
end

local function of_budget(key, capacity, wanted, keep)
  local spent = tonumber(redis.call('GET', key) or '0')
  local granted = math.min(wanted, math.max(0, capacity - spent))
  spent = math.max(0, spent + granted)
  redis.call('SET', key, string.format('%.0f', spent), 'EX', keep)
  return granted, 1000000
end

for i, key in ipairs(KEYS) do
  local capacity, interval = tonumber(ARGV[4 * i - 3]), tonumber(ARGV[4 * i - 2])
  local wanted, granted, wait = tonumber(ARGV[4 * i - 1]), 0, 0
  if interval > 0 then
    granted, wait = of_rate(key, capacity, interval, wanted)
  else
    granted, wait = of_budget(key, capacity, wanted, ARGV[4 * i])
  end
  answers[i] = {granted, math.ceil(wait)}
end
return answers
"""


class RedisLeases:
    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._digest = redis.register_script(TAKE_SCRIPT).sha

    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        keys = [want.rule.key for want in wants]
        numbers = [number for want in wants for number in _numbers(want)]
        try:
            answers = await self._run(len(keys), [*keys, *numbers])
        except RedisError as error:
            raise OSError(f"limits: {type(error).__name__}") from error
        return [Grant(units=units, wait_s=wait_us / 1e6) for units, wait_us in answers]

    async def _run(self, num_keys: int, arguments: list[Any]) -> list[tuple[int, int]]:
        try:
            answers = await self._redis.evalsha(self._digest, num_keys, *arguments)
        except NoScriptError:  # Redis was started anew, or fails over
            answers = await self._redis.eval(TAKE_SCRIPT, num_keys, *arguments)
        return cast(list[tuple[int, int]], answers)


def _numbers(want: Want) -> tuple[int, str, int, int]:
    interval_us = (want.rule.interval_s or 0.0) * 1e6
    return want.rule.capacity, repr(interval_us), want.units, want.rule.keep_s
