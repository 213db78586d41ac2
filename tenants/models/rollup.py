"""Rollups of usage, outcomes and latency by hour and day, and the state of counting them."""

import uuid
from typing import ClassVar, Final

from django.contrib.postgres.fields import ArrayField
from django.db import models

from caret.contracts.usage import SPANS_S
from caret.foundation.postgres.row_security import RowSecurity
from tenants.models.tenant import Tenant

# Column names by the number of seconds after which an accepted suggestion was checked again. The
# columns checked_* count the suggestions that were checked. The columns retained_* count only those
# whose text was mostly unchanged.
CHECKED_AFTER: Final = {span_s: f"checked_{span_s}" for span_s in SPANS_S}
RETAINED_AFTER: Final = {span_s: f"retained_{span_s}" for span_s in SPANS_S}
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
    "partially_accepted",
    "rejected",
    "shown_chars",
    "seen_chars",
    "accepted_chars",
    "shown_lines",
    "accepted_lines",
    "accepted_tokens",
    *(name for span_s in SPANS_S for name in (CHECKED_AFTER[span_s], RETAINED_AFTER[span_s])),
    "typed_chars",
)
# The user ID in rows of service keys, which have no user. A column of a primary key cannot be null.
SERVICE_KEYS_USER_ID: Final = uuid.UUID(int=0)


class _RollupRow(models.Model):
    """The counts of one user's completions and typing with one editor, language, model and variant.

    tenants.usage.reports.counters explains each count.
    """

    pk = models.CompositePrimaryKey(
        "tenant_id", "starts_at", "user_id", "editor", "language", "model", "variant"
    )
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    # The beginning of the hour or day (UTC). An outcome counts at the time of its completion.
    starts_at = models.DateTimeField()
    user_id = models.UUIDField()  # SERVICE_KEYS_USER_ID: all service keys
    # "": unknown.
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
    """Usage of a UTC day."""

    class Meta:
        db_table = "tenants_usage_day"
        constraints: ClassVar = [RowSecurity(name="usage_day_tenant")]


class _LatencyCounts(models.Model):
    """The latencies of all completions of one mode, as histograms for all users together.

    tenants.usage.rollups.latency_histogram defines the buckets.
    """

    pk = models.CompositePrimaryKey("tenant_id", "starts_at", "mode")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    starts_at = models.DateTimeField()  # the beginning of the hour or day (UTC)
    mode = models.TextField()
    # The histogram of the times to the first token. sizes: the bucket numbers of the buckets with
    # requests, ascending. counts: the number of requests in each of these buckets.
    sizes = ArrayField(models.IntegerField())
    counts = ArrayField(models.BigIntegerField())
    # The same histogram of display latencies, as clients report them. None: the row is older than
    # these columns.
    display_sizes = ArrayField(models.IntegerField(), null=True)
    display_counts = ArrayField(models.BigIntegerField(), null=True)
    # The sum, over all requests that were sent to a replica, of the number of requests that were
    # already in flight there. It measures the load of the engines.
    in_flight_at_replica = models.BigIntegerField()
    sent = models.BigIntegerField()  # number of requests that were sent to a replica

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.starts_at:%Y-%m-%d %H} {self.mode}"


class LatencyHour(_LatencyCounts):
    class Meta:
        db_table = "tenants_latency_hour"
        # "speed_hour" is an earlier name of the table. A new name would need a migration.
        constraints: ClassVar = [RowSecurity(name="speed_hour_tenant")]


class LatencyDay(_LatencyCounts):
    """Latency of a UTC day."""

    class Meta:
        db_table = "tenants_latency_day"
        # "speed_day" is an earlier name of the table.
        constraints: ClassVar = [RowSecurity(name="speed_day_tenant")]


class DirtyHour(models.Model):
    """A mark that an hour must be counted, for example because it has new records.

    Each batch of records writes marks of its own. A worker deletes the marks of an hour before it
    counts the hour. A mark that is committed later stays, so the hour is counted again.
    """

    pk = models.CompositePrimaryKey("tenant_id", "hour", "mark_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    hour = models.DateTimeField()
    mark_id = models.UUIDField(default=uuid.uuid4)

    class Meta:
        db_table = "tenants_dirty_hour"
        # "rollup_mark" is an earlier name of the table.
        constraints: ClassVar = [
            RowSecurity(name="rollup_mark_tenant", privileges=("SELECT", "INSERT", "DELETE"))
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.hour:%Y-%m-%d %H}"


class RollupState(models.Model):
    """The time up to which a tenant's usage is counted."""

    tenant = models.OneToOneField(
        Tenant, primary_key=True, on_delete=models.PROTECT, related_name="+"
    )
    # All usage from before this time is counted, except usage that gateways have not delivered yet.
    complete_until = models.DateTimeField()

    class Meta:
        db_table = "tenants_rollup_state"
        constraints: ClassVar = [
            RowSecurity(name="rollup_state_tenant", privileges=("SELECT", "INSERT", "UPDATE"))
        ]

    def __str__(self) -> str:
        return f"{self.tenant_id} until {self.complete_until}"
