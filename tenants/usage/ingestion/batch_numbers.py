"""The numbers of the batches in which a tenant's usage comes in: what is to be done for each record
once is done in their order, from a watermark on, however late and out of order the records are."""

from django.db.models import F

from caret.foundation.ids import TenantId
from tenants.models import UsageBatchCounter


def allocate_batch(tenant_id: TenantId) -> int:
    """Inside the tenant's scope, before the rows. Holds the feed until the commit: a batch with a
    higher number is never seen before this one. Two queries, three the first time."""
    feed = UsageBatchCounter.objects.filter(tenant_id=tenant_id)
    if not feed.update(last_batch=F("last_batch") + 1):
        # Two at once: the second finds the first one's row, and waits for it.
        UsageBatchCounter.objects.bulk_create(
            [UsageBatchCounter(tenant_id=tenant_id)], ignore_conflicts=True
        )
        feed.update(last_batch=F("last_batch") + 1)
    return feed.values_list("last_batch", flat=True).get()


def latest_batch(tenant_id: TenantId) -> int:
    """Inside the tenant's scope: all batches up to it can be seen; 0: there is none."""
    found = UsageBatchCounter.objects.filter(tenant_id=tenant_id).values_list(
        "last_batch", flat=True
    )
    return found.first() or 0
