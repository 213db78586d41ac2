"""Operations that rate the usage and seats of tenants: they post charges to the ledger."""

from contextlib import suppress
from datetime import datetime

import structlog

from caret.foundation.ids import TenantId
from tenants.base.errors import NotFound
from tenants.base.worker.failure_log import FailureLog
from tenants.billing.budgets.redis_sync import try_sync_spend_to_redis
from tenants.billing.rating.clock import choose_billing_time
from tenants.billing.rating.seats import post_seat_charges
from tenants.billing.rating.tokens import rate_tokens
from tenants.security.authorization.directory import list_tenants

log = structlog.get_logger(__name__)


def rate_all_tenants(*, now: datetime) -> None:
    """Rate all tenants, and write their spending to Redis.

    Concurrent runs wait for a tenant's lock. The failure of one tenant is logged, and does not stop
    the run.
    """
    now = choose_billing_time(now)
    for tenant_id in list_tenants().values():
        # Without a plan (NotFound), there is nothing to rate.
        with FailureLog("billing.rating_failed", tenant_id=tenant_id), suppress(NotFound):
            rate_tenant(tenant_id, now=now)
            try_sync_spend_to_redis(tenant_id, now=now)


def rate_tenant(tenant_id: TenantId, *, now: datetime, until_batch: int | None = None) -> int:
    """Post seats and usage of a tenant, and return the number of usage batches.

    Posts the seats of at most `seats.MAX_DAYS` days. Rates the batches up to and including the
    number `until_batch`; None: all batches. Raises NotFound for a tenant without a plan.
    """
    num_days, num_batches = post_seat_charges(tenant_id, now=now), 0
    has_more = True
    while has_more:
        result = rate_tokens(tenant_id, now=now, until_batch=until_batch)
        num_batches, has_more = num_batches + result.num_batches, result.has_more
    if num_batches or num_days:
        log.info("billing.rated", tenant_id=tenant_id, batches=num_batches, days_of_seats=num_days)
    return num_batches
