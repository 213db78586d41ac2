"""The periodic task that issues invoices."""

from datetime import datetime

import structlog

from tenants.base.errors import NotFound
from tenants.billing.invoices.operations import issue_due
from tenants.billing.rating.clock import safe_billing_time
from tenants.security.authorization.directory import list_tenants

log = structlog.get_logger(__name__)


def issue_all(*, now: datetime) -> None:
    """Issue the invoices that are due for all tenants. Concurrent runs wait for a tenant's lock."""
    now = safe_billing_time(now)
    for tenant_id in list_tenants().values():
        try:
            issued = issue_due(tenant_id, now=now)
        except NotFound:
            continue  # without a plan there is nothing to invoice
        # One tenant's failure must not delay the others.
        except Exception as error:  # noqa: BLE001
            log.error("billing.not_invoiced", tenant_id=tenant_id, error=type(error).__name__)
            continue
        for number in issued:
            log.info("billing.invoiced", tenant_id=tenant_id, number=number)
