"""Issues the invoices that are due, tenant by tenant."""

from datetime import datetime

import structlog

from tenants.base.errors import NotFound
from tenants.billing.invoices.operations import issue_due
from tenants.billing.rating.clock import safe_billing_time
from tenants.security.authorization.directory import list_tenants

log = structlog.get_logger(__name__)


def issue_all(*, now: datetime) -> None:
    """Two of these at once do no harm: a tenant's lock lets one after the other."""
    now = safe_billing_time(now)
    for tenant_id in list_tenants().values():
        try:
            issued = issue_due(tenant_id, now=now)
        except NotFound:
            continue  # without a plan there is nothing to invoice
        except Exception as error:  # noqa: BLE001  # one tenant's keeps no other's waiting
            log.error("billing.not_invoiced", tenant_id=tenant_id, error=type(error).__name__)
            continue
        for number in issued:
            log.info("billing.invoiced", tenant_id=tenant_id, number=number)
