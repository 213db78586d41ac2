"""The Redis store of leases: one call for all buckets of a request."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import NoScriptError, RedisError

from inference.gateway.rate_limits.leased_bucket import LEASE_S, LeaseGrant, LeaseRequest

# The last request of a gateway is remembered for this long after its lease ended, so that a request
# that arrives late or twice changes nothing. But the bucket of a rate is deleted before that, when
# all its units are available again and no lease is valid. A late request then makes a new lease.
REMEMBER_S: Final = 3_600.0
# If all connections are in use, a call waits. Redis has one thread, so more connections would not
# help.
_MAX_CONNECTIONS: Final = 32

# KEYS: the buckets, each a hash with these fields. `used`: the units of a budget that are spent or
# leased. `full_at`: the time in microseconds at which all units of a rate are available again.
# `raised`: the part of `used` that the ledger has added (see caret.contracts.pricing). One field
# for the lease of each gateway.
# ARGV: the gateway, microseconds of a lease, microseconds for which its last request is remembered.
# Then for each bucket: capacity, microseconds in which one unit comes back (0: a budget, whose
# units do not come back), seconds to keep a budget, and the request (see LeaseRequest): its number,
# the number of the last request that was answered (since), the units spent since that one, and in
# ascending order:
#   min_units: the smallest useful lease. If fewer units are available, the lease does not grow.
#   needed_units: enough for all requests of the gateway. If fewer are available, but at least
#     min_units, the lease gets all available units.
#   wanted_units: the largest useful lease, with spare units for later requests. If needed_units are
#     available, the lease gets them and a quarter of the other available units, but at most
#     wanted_units.
# Returns for each bucket: units held, microseconds until min_units are available, units overdrawn.
# Only the clock of Redis counts, because the clocks of gateways differ. After that clock is set
# back, a bucket may be empty for a while. Numbers are formatted, because Lua would write only 14
# digits.
RENEW_SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local gateway = 'gateway:' .. ARGV[1]
local lease_us, remember_us = tonumber(ARGV[2]), tonumber(ARGV[3])
local answers = {}

local NUMBER, SINCE, SPENT_SINCE, HELD, ENDS = 1, 2, 3, 4, 5

local function decode_lease(text)
  local lease = {}
  for field in string.gmatch(text, '%S+') do
    lease[#lease + 1] = tonumber(field)
  end
  return lease
end

local function encode_lease(lease)
  return string.format('%.0f %.0f %.0f %.0f %.0f', unpack(lease))
end

local function take_back_ended_leases(key)
  local units, fields = 0, redis.call('HGETALL', key)
  for i = 1, #fields, 2 do
    local name = fields[i]
    if string.sub(name, 1, 8) == 'gateway:' and name ~= gateway then
      local lease = decode_lease(fields[i + 1])
      -- The lease has ended. Or it ends later than a new lease would, because the clock was set
      -- back since it was made.
      if lease[ENDS] <= now or lease[ENDS] > now + lease_us then
        units = units + lease[HELD]
        lease[HELD] = 0
        redis.call('HSET', key, name, encode_lease(lease))
      end
      if lease[ENDS] + remember_us <= now then
        redis.call('HDEL', key, name)
      end
    end
  end
  return units
end

for i, key in ipairs(KEYS) do
  local at = 9 * (i - 1) + 3  -- three arguments come first, then nine for each bucket
  local capacity, interval_us = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local keep_s, number = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local since = tonumber(ARGV[at + 5])
  local spent_since, min_units = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
  local needed_units, wanted_units = tonumber(ARGV[at + 8]), tonumber(ARGV[at + 9])
  local is_rate = interval_us > 0
  local field = is_rate and 'full_at' or 'used'
  local fields = redis.call('HMGET', key, field, 'raised', gateway)
  local lease = fields[3] and decode_lease(fields[3]) or {0, 0, 0, 0, 0}
  local wait_us, overdrawn_units = 0, 0

  if number > lease[NUMBER] then
    local stored = tonumber(fields[1] or '0')  -- a time for a rate, units for a budget
    local used = is_rate and (stored - now) / interval_us or stored  -- units
    -- Skip spending that an unanswered request already reported.
    local spent = spent_since
    if lease[SINCE] == since then
      spent = spent - lease[SPENT_SINCE]
    end
    local unspent = math.max(0, lease[HELD] - spent)
    local beyond = math.max(0, spent - lease[HELD])
    used = used - unspent
    -- While Redis is unavailable, a gateway can spend more than its lease. If these units are of a
    -- rate, they do not count: they come back by themselves.
    if not is_rate and beyond > 0 then
      -- The ledger may have added this spending already (`raised`).
      local known = math.min(beyond, tonumber(fields[2] or '0'))
      used = used + beyond - known
      if known > 0 then
        redis.call('HINCRBY', key, 'raised', string.format('%.0f', -known))
      end
    end

    local function clamp_used()
      if is_rate then
        used = math.min(capacity, math.max(0, used))
      end
    end
    local function count_free_units()
      return math.max(0, math.floor(capacity - used + 1e-6))
    end
    -- `take_back_ended_leases` reads all leases, which takes long. So it is called only if units
    -- are scarce, or if the bucket remembers no request of this gateway. A restarted gateway has a
    -- new name: its first call also deletes what the bucket remembers of gateways that are gone.
    local must_take_back = not fields[3]
    if fields[3] then
      clamp_used()
      must_take_back = count_free_units() < wanted_units
    end
    if must_take_back then
      used = used - take_back_ended_leases(key)
    end
    clamp_used()
    local units, held = count_free_units(), 0
    if units >= needed_units then
      -- Leave three quarters of the other units to the other gateways.
      local spare = math.floor((units - needed_units) / 4)
      held = needed_units + math.min(wanted_units - needed_units, spare)
    elseif units >= min_units then
      held = units
    else
      held = math.min(unspent, units)
      -- For a budget, a second until the next attempt.
      wait_us = is_rate and (used + min_units - capacity) * interval_us or 1000000
    end
    used = used + held

    lease = {number, since, spent_since, held, now + lease_us}
    local new_stored, keep_ms = used, keep_s * 1000
    if is_rate then
      new_stored = now + used * interval_us
      keep_ms = math.ceil(math.max(used * interval_us, lease_us) / 1000)
    else
      overdrawn_units = math.max(0, used - capacity)
    end
    redis.call('HSET', key, field, string.format('%.0f', new_stored), gateway, encode_lease(lease))
    redis.call('PEXPIRE', key, keep_ms)
  end
  answers[i] = {lease[HELD], math.ceil(wait_us), overdrawn_units}
end
return answers
"""


@asynccontextmanager
async def open_lease_redis(url: str, *, socket_timeout_s: float) -> AsyncIterator[Redis]:
    """Open connections for leases. A call waits for a free one until the caller's timeout."""
    pool = BlockingConnectionPool.from_url(
        url, max_connections=_MAX_CONNECTIONS, timeout=None, socket_timeout=socket_timeout_s
    )
    async with Redis.from_pool(pool) as redis:
        yield redis


class RedisLeaseStore:
    def __init__(
        self, redis: Redis, *, lease_s: float = LEASE_S, remember_s: float = REMEMBER_S
    ) -> None:
        self._redis = redis
        self._digest = redis.register_script(RENEW_SCRIPT).sha
        self._times_us = (round(lease_s * 1e6), round(remember_s * 1e6))

    async def renew(self, gateway: str, requests: Sequence[LeaseRequest]) -> list[LeaseGrant]:
        keys = [request.spec.key for request in requests]
        numbers = [number for request in requests for number in _build_script_arguments(request)]
        try:
            results = await self._run_script(len(keys), [*keys, gateway, *self._times_us, *numbers])
        except RedisError as error:
            raise OSError(f"limits: {type(error).__name__}") from error
        return [
            LeaseGrant(granted_units, wait_us / 1e6, overdrawn_units)
            for granted_units, wait_us, overdrawn_units in results
        ]

    async def _run_script(self, num_keys: int, arguments: list[Any]) -> list[tuple[int, int, int]]:
        try:
            results = await self._redis.evalsha(self._digest, num_keys, *arguments)
        except NoScriptError:  # Redis was restarted, or failed over
            results = await self._redis.eval(RENEW_SCRIPT, num_keys, *arguments)
        return cast(list[tuple[int, int, int]], results)


def _build_script_arguments(request: LeaseRequest) -> tuple[int | str, ...]:
    spec = request.spec
    return (
        spec.capacity,
        repr((spec.interval_s or 0.0) * 1e6),
        spec.keep_s,
        request.number,
        request.since,
        request.spent_since,
        request.min_units,
        request.needed_units,
        request.wanted_units,
    )
