"""Numbers of the batches in which a tenant's usage records arrive.

Billing must rate each record once. It stores the number of the latest batch that it has rated, and
continues with the next one. It therefore misses no record, even if records arrive late or in
another order.
"""

from django.db.models import F

from caret.foundation.ids import TenantId
from tenants.models import UsageBatchCounter


def allocate_batch(tenant_id: TenantId) -> int:
    """Allocate the next batch number. Must run inside the tenant's scope, before rows are inserted.

    Locks the tenant's counter until the commit, so that a batch with a higher number is never
    visible before this one. Two queries; four for the tenant's first batch.
    """
    counter = UsageBatchCounter.objects.filter(tenant_id=tenant_id)
    if not counter.update(last_batch=F("last_batch") + 1):
        # If two transactions insert the row at once, the second waits for the first one to end.
        UsageBatchCounter.objects.bulk_create(
            [UsageBatchCounter(tenant_id=tenant_id)], ignore_conflicts=True
        )
        counter.update(last_batch=F("last_batch") + 1)
    return counter.values_list("last_batch", flat=True).get()


def read_latest_batch(tenant_id: TenantId) -> int:
    """Return the number of the latest batch; 0: no batch exists.

    Must run inside the tenant's scope. All batches up to this number are visible.
    """
    batches = UsageBatchCounter.objects.filter(tenant_id=tenant_id).values_list(
        "last_batch", flat=True
    )
    return batches.first() or 0
