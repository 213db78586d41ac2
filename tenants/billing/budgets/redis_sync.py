"""Writes spending to Redis, so that gateways never count less than the spending that was rated.

This is needed if Redis has lost its data, or if a budget is created or becomes hard during a month.
"""

from datetime import datetime
from typing import Final

import redis
import structlog

from caret.contracts.pricing import KEEP_SPEND_S, spend_key
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import start_of_month, utc_day
from tenants.base.redis_connection import connect_to_redis
from tenants.billing.budgets.month_spend import read_month_spend
from tenants.models import Budget

log = structlog.get_logger(__name__)

# KEYS[1]: a hash with the spending of a budget in a month. ARGV[1]: micros that were rated.
# ARGV[2]: seconds to keep the hash. The added amount is also counted in `raised`, because gateways
# may report the same spending later (see caret.contracts.pricing). `%.0f` writes large numbers
# without an exponent.
_RAISE_SCRIPT: Final = """
local missing = tonumber(ARGV[1]) - tonumber(redis.call('HGET', KEYS[1], 'used') or '0')
if missing > 0 then
  redis.call('HINCRBY', KEYS[1], 'used', string.format('%.0f', missing))
  redis.call('HINCRBY', KEYS[1], 'raised', string.format('%.0f', missing))
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
"""


def try_sync_spend_to_redis(tenant_id: TenantId, *, now: datetime) -> None:
    """Write the spending to Redis. An error of Redis is logged and not raised.

    After an error, gateways continue with the counts that they have. The next rating tries again.
    """
    try:
        sync_spend_to_redis(tenant_id, now=now)
    except redis.RedisError as error:
        log.warning("billing.spend_not_synced", tenant_id=tenant_id, reason=type(error).__name__)


def sync_spend_to_redis(tenant_id: TenantId, *, now: datetime) -> None:
    """Increase the counts in Redis to the spending of this month; never decrease them.

    Raises redis.RedisError.
    """
    month = start_of_month(utc_day(now))
    with tenant_scope(tenant_id):
        hard_budgets = list(Budget.objects.filter(tenant_id=tenant_id, is_hard=True))
        if not hard_budgets:
            return
        month_spend = read_month_spend(tenant_id, month)
    pipeline = connect_to_redis().pipeline(transaction=False)
    for budget in hard_budgets:
        hash_key = spend_key(tenant_id, str(budget.id), f"{month:%Y-%m}")
        spent_micros = month_spend.spent_of_budget(budget)
        pipeline.eval(_RAISE_SCRIPT, 1, hash_key, spent_micros, KEEP_SPEND_S)
    pipeline.execute()
