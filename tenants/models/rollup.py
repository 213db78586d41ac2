"""Usage, outcomes and speed by hour and day, in counts; what is to be counted; how far it is."""

import uuid
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models

from caret.contracts.usage import SPANS_S
from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant

# Columns by the number of seconds after which an accepted suggestion was looked at again.
LOOKED_AT: Final = {span_s: f"looked_at_{span_s}" for span_s in SPANS_S}
RETAINED: Final = {span_s: f"retained_{span_s}" for span_s in SPANS_S}
# One column for each field of tenants.usage.reports.counters.UsageCounters, in its order.
ROLLUP_COLUMNS: Final = (
    "requests",
    "completed",
    "cancelled",
    "shed",
    "filtered",
    "errors",
    "suggestions",
    "suggested_chars",
    "suggested_lines",
    "parsed",
    "parsed_valid",
    "prompt_tokens",
    "prompt_tokens_with_cache_info",
    "cached_tokens",
    "generated_tokens",
    "shown",
    "seen",
    "accepted",
    "partly_accepted",
    "rejected",
    "shown_chars",
    "seen_chars",
    "accepted_chars",
    "shown_lines",
    "accepted_lines",
    "accepted_tokens",
    *(name for span_s in SPANS_S for name in (LOOKED_AT[span_s], RETAINED[span_s])),
    "typed_chars",
)
# In the place of a user, which a key needs: what services' keys have used.
SERVICES: Final = uuid.UUID(int=0)


class _RollupRow(models.Model):
    """The counts of one user's completions with one editor, language, model and variant.

    tenants.usage.reports.counters explains each of them.
    """

    pk = models.CompositePrimaryKey(
        *("tenant_id", "starts_at", "user_id", "editor", "language", "model", "variant")
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    starts_at = models.DateTimeField()  # of the completions; their outcomes belong here, too
    user_id = models.UUIDField()
    # "": not known.
    editor = models.TextField()
    language = models.TextField()
    model = models.TextField()
    variant = models.TextField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.starts_at:%Y-%m-%d %H}"


for _name in ROLLUP_COLUMNS:
    models.BigIntegerField(default=0).contribute_to_class(_RollupRow, _name)


class UsageHour(_RollupRow):
    class Meta:
        db_table = "tenants_usage_hour"
        constraints: ClassVar = [RowSecurity(name="usage_hour_tenant")]


class UsageDay(_RollupRow):
    """Days in UTC."""

    class Meta:
        db_table = "tenants_usage_day"
        constraints: ClassVar = [RowSecurity(name="usage_day_tenant")]


class _LatencyCounts(models.Model):
    """Of all completions of one kind of request: whose they are is not in it. First tokens by size,
    see tenants.usage.rollups.latency_histogram."""

    pk = models.CompositePrimaryKey("tenant_id", "starts_at", "mode")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    starts_at = models.DateTimeField()
    mode = models.TextField()
    # Of completed requests; ascending, and how many there were of each.
    sizes = ArrayField(models.IntegerField())
    counts = ArrayField(models.BigIntegerField())
    # Requests that were at the replica already, of all `sent` together; as the engines' load.
    at_replica = models.BigIntegerField()
    sent = models.BigIntegerField()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.starts_at:%Y-%m-%d %H} {self.mode}"


class LatencyHour(_LatencyCounts):
    class Meta:
        db_table = "tenants_latency_hour"
        constraints: ClassVar = [RowSecurity(name="speed_hour_tenant")]


class LatencyDay(_LatencyCounts):
    """Days in UTC."""

    class Meta:
        db_table = "tenants_latency_day"
        constraints: ClassVar = [RowSecurity(name="speed_day_tenant")]


class DirtyHour(models.Model):
    """An hour that has got records since it was counted. One for each batch that came in, so that
    who counts takes away the marks that he has seen, and no others."""

    pk = models.CompositePrimaryKey("tenant_id", "hour", "mark_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    hour = models.DateTimeField()
    mark_id = models.UUIDField(default=uuid.uuid4)

    class Meta:
        db_table = "tenants_dirty_hour"
        constraints: ClassVar = [
            RowSecurity(name="rollup_mark_tenant", privileges=("SELECT", "INSERT", "DELETE"))
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.hour:%Y-%m-%d %H}"


class RollupState(models.Model):
    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    # All that gateways had delivered of the time before it is counted.
    complete_until = models.DateTimeField()

    class Meta:
        db_table = "tenants_rollup_state"
        constraints: ClassVar = [
            RowSecurity(name="rollup_state_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} until {self.complete_until}"
