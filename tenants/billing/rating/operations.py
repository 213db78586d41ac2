"""Rates all that is due, tenant by tenant."""

from datetime import datetime

import structlog

from caret.foundation.ids import TenantId
from tenants.base.errors import NotFound
from tenants.billing.budgets.redis_sync import try_sync_spend_to_redis
from tenants.billing.rating.clock import safe_billing_time
from tenants.billing.rating.seats import post_seat_charges
from tenants.billing.rating.tokens import rate_tokens
from tenants.security.authorization.directory import list_tenants

log = structlog.get_logger(__name__)


def rate_all_tenants(*, now: datetime) -> None:
    """Two of these at once do no harm: a tenant's lock lets one after the other."""
    now = safe_billing_time(now)
    for tenant_id in list_tenants().values():
        try:
            rate_tenant(tenant_id, now=now)
            try_sync_spend_to_redis(tenant_id, now=now)
        except NotFound:
            continue  # without a plan there is nothing to rate
        except Exception as error:  # noqa: BLE001  # one tenant's keeps no other's waiting
            log.error("billing.rating_failed", tenant_id=tenant_id, error=type(error).__name__)


def rate_tenant(tenant_id: TenantId, *, now: datetime, until: int | None = None) -> int:
    """The number of batches, up to `until`; None: to the newest, whatever comes meanwhile. Raises
    NotFound for a tenant without a plan."""
    num_days, num_batches = post_seat_charges(tenant_id, now=now), 0
    has_more = True
    while has_more:
        rated = rate_tokens(tenant_id, now=now, until=until)
        num_batches, has_more = num_batches + rated.num_batches, rated.has_more
    if num_batches or num_days:
        log.info("billing.rated", tenant_id=tenant_id, batches=num_batches, seat_days=num_days)
    return num_batches
