"""Requests and what became of them, in counts, never in code; partitioned by month.

The tables are keyed by time and the record's own id, so that a record that comes twice is one row.
They point at keys and users without a foreign key: what was used stays counted.
"""

from typing import ClassVar

from django.db import models

from caret.foundation.postgres.row_security import (
    APPEND_ONLY,
    ColumnUpdatable,
    DeletableAfter,
    RowSecurity,
)
from tenants.models.tenant import Tenant


def _renamable(name: str, table: str) -> ColumnUpdatable:
    """Who is erased gets another id, which must be nobody's: a record cannot be made another's."""
    nobodys = f"NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = {table}.user_id)"
    return ColumnUpdatable(name=name, column="user_id", condition=nobodys)


class UsageRecord(models.Model):
    """A `caret.contracts.usage.CompletionRecord`, which says what each field means."""

    pk = models.CompositePrimaryKey("tenant_id", "occurred_at", "request_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    occurred_at = models.DateTimeField()  # when the gateway received the request
    request_id = models.UUIDField()
    user_id = models.UUIDField(null=True)  # None: a service key
    key_id = models.UUIDField()
    protocol = models.TextField()
    mode = models.TextField()
    language = models.TextField()  # "": the client did not say
    tier = models.TextField()
    pool = models.TextField()  # "": never got as far
    replica = models.TextField()
    finish = models.TextField()
    error_code = models.TextField()  # "" unless finish is error
    prompt_tokens = models.IntegerField()
    cached_tokens = models.IntegerField(null=True)  # None: the engine was stopped before it told
    generated_tokens = models.IntegerField()
    # Milliseconds; None: not reached.
    assemble_ms = models.FloatField(null=True)
    first_token_ms = models.FloatField(null=True)
    engine_ms = models.FloatField(null=True)
    total_ms = models.FloatField()
    # From here on null: recorded before there was such a field.
    trigger = models.TextField(null=True)  # noqa: DJ001  # an empty text would say something else
    variant = models.TextField(null=True)  # noqa: DJ001
    filter_reason = models.TextField(null=True)  # noqa: DJ001
    num_files = models.IntegerField(null=True)
    num_snippets = models.IntegerField(null=True)
    authenticated_ms = models.FloatField(null=True)
    admitted_ms = models.FloatField(null=True)
    routed_ms = models.FloatField(null=True)
    num_in_flight_at_replica = models.IntegerField(null=True)
    batch = models.BigIntegerField(
        null=True
    )  # of the tenant's UsageBatchCounter, in which it came in
    editor = models.TextField(null=True)  # noqa: DJ001
    model = models.TextField(null=True)  # noqa: DJ001
    num_chars = models.IntegerField(null=True)
    num_lines = models.IntegerField(null=True)
    is_parsed = models.BooleanField(null=True)

    class Meta:
        db_table = "tenants_usage_record"
        constraints: ClassVar = [
            RowSecurity(name="usage_record_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="usage_record_age", column="occurred_at", days=62),
            _renamable("usage_record_renamed", "tenants_usage_record"),
        ]
        indexes: ClassVar = [
            # Reader: rating, which takes batch after batch.
            models.Index(fields=["tenant", "batch"], name="usage_record_batch"),
            # Readers: what was refused or withheld lately, and lists of such requests: one in a
            # hundred records or fewer.
            models.Index(
                fields=["tenant", "occurred_at"],
                name="usage_record_denied",
                condition=models.Q(finish__in=["error", "filtered"]),
            ),
        ]

    def __str__(self) -> str:
        return str(self.request_id)


class Outcome(models.Model):
    """A `caret.contracts.usage.OutcomeRecord`."""

    pk = models.CompositePrimaryKey("tenant_id", "occurred_at", "outcome_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    occurred_at = models.DateTimeField()
    outcome_id = models.UUIDField()
    request_id = models.UUIDField()  # of the completion
    user_id = models.UUIDField(null=True)
    event = models.TextField()
    chars = models.IntegerField()
    after_ms = models.IntegerField()  # since the suggestion was shown; persisted: was accepted
    lines = models.IntegerField(null=True)  # None: recorded before there was such a field
    # Of persisted only.
    span_s = models.IntegerField(null=True)
    edited_ratio = models.FloatField(null=True)  # 0 to 1

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="outcome_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="outcome_age", column="occurred_at", days=62),
            _renamable("outcome_renamed", "tenants_outcome"),
        ]
        indexes: ClassVar = [
            # Read by the roll-ups: what became of an hour's completions.
            models.Index(fields=["tenant", "request_id"], name="outcome_request"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.request_id}"


class TypingReport(models.Model):
    """A `caret.contracts.usage.TypedRecord`."""

    pk = models.CompositePrimaryKey("tenant_id", "occurred_at", "typed_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    occurred_at = models.DateTimeField()
    typed_id = models.UUIDField()
    user_id = models.UUIDField(null=True)  # None: a service key
    language = models.TextField()
    editor = models.TextField()
    chars = models.IntegerField()

    class Meta:
        db_table = "tenants_typing_report"
        constraints: ClassVar = [
            RowSecurity(name="typed_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="typed_age", column="occurred_at", days=62),
            _renamable("typed_renamed", "tenants_typing_report"),
        ]

    def __str__(self) -> str:
        return str(self.typed_id)


# Partitioned by occurred_at; `manage.py create_partitions` makes their months.
PARTITIONED_TABLES = (
    UsageRecord._meta.db_table,
    Outcome._meta.db_table,
    TypingReport._meta.db_table,
)
