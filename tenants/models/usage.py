"""Usage records, outcomes and typing reports in counts only, partitioned by month.

The primary keys contain the time and the record's own ID, so a record that arrives twice is stored
once. IDs of API keys and users have no foreign keys, so that usage still counts after a pseudonym
has replaced a user's ID.
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


def _allow_user_id_replacement(name: str, table: str) -> ColumnUpdatable:
    """Return the rule that `user_id` may only be replaced by an ID that belongs to no user.

    A record can therefore not be moved to another user.
    """
    has_no_user = f"NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = {table}.user_id)"
    return ColumnUpdatable(name=name, column="user_id", condition=has_no_user)


class UsageRecord(models.Model):
    """A completion. `caret.contracts.usage.CompletionRecord` documents the columns."""

    pk = models.CompositePrimaryKey("tenant_id", "occurred_at", "request_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    occurred_at = models.DateTimeField()  # when the gateway received the request
    request_id = models.UUIDField()
    user_id = models.UUIDField(null=True)  # None: a service key
    key_id = models.UUIDField()
    protocol = models.TextField()
    mode = models.TextField()
    language = models.TextField()  # "": unknown
    tier = models.TextField()
    pool = models.TextField()  # "": not admitted
    replica = models.TextField()
    finish_reason = models.TextField()
    error_code = models.TextField()  # "" unless finish_reason is error
    prompt_tokens = models.IntegerField()
    # None: the engine did not report the number, for example because it was stopped.
    cached_tokens = models.IntegerField(null=True)
    generated_tokens = models.IntegerField()
    # Milliseconds; None: the request did not reach this point.
    assemble_ms = models.FloatField(null=True)
    first_token_ms = models.FloatField(null=True)
    engine_ms = models.FloatField(null=True)
    total_ms = models.FloatField()
    # Each of the following columns is null in records that are older than the column.
    trigger = models.TextField(null=True)  # noqa: DJ001  # an empty text is not the same as null
    variant = models.TextField(null=True)  # noqa: DJ001
    filter_reason = models.TextField(null=True)  # noqa: DJ001
    num_files = models.IntegerField(null=True)
    num_snippets = models.IntegerField(null=True)
    authenticated_ms = models.FloatField(null=True)
    admitted_ms = models.FloatField(null=True)
    routed_ms = models.FloatField(null=True)
    num_in_flight_at_replica = models.IntegerField(null=True)
    batch = models.BigIntegerField(null=True)  # the batch's number in UsageBatchCounter
    editor = models.TextField(null=True)  # noqa: DJ001
    model = models.TextField(null=True)  # noqa: DJ001
    num_chars = models.IntegerField(null=True)
    num_lines = models.IntegerField(null=True)
    is_syntax_checked = models.BooleanField(null=True)

    class Meta:
        db_table = "tenants_usage_record"
        constraints: ClassVar = [
            RowSecurity(name="usage_record_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="usage_record_age", column="occurred_at", days=62),
            _allow_user_id_replacement("usage_record_renamed", "tenants_usage_record"),
        ]
        indexes: ClassVar = [
            # Reader: rating, which reads batch after batch.
            models.Index(fields=["tenant", "batch"], name="usage_record_batch"),
            # Readers: reports and lists of rejected or filtered requests. These are at most one in
            # a hundred records.
            models.Index(
                fields=["tenant", "occurred_at"],
                name="usage_record_denied",
                condition=models.Q(finish_reason__in=["error", "filtered"]),
            ),
        ]

    def __str__(self) -> str:
        return str(self.request_id)


class Outcome(models.Model):
    """An outcome. `caret.contracts.usage.OutcomeRecord` documents the columns."""

    pk = models.CompositePrimaryKey("tenant_id", "occurred_at", "outcome_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    occurred_at = models.DateTimeField()
    outcome_id = models.UUIDField()
    request_id = models.UUIDField()  # of the completion
    user_id = models.UUIDField(null=True)  # None: a service key
    event = models.TextField()  # caret.contracts.usage.OutcomeEvent
    chars = models.IntegerField()  # number of characters shown, accepted or persisted
    # Time since the suggestion was shown. For the event "persisted": since it was accepted.
    after_ms = models.IntegerField()
    lines = models.IntegerField(null=True)  # None: the row is older than the column
    # These two are set only for the event "persisted".
    span_s = models.IntegerField(null=True)
    edited_ratio = models.FloatField(null=True)  # 0 to 1
    # Only for the event "shown": from sending the request to text on the screen, as the client
    # measured it.
    display_ms = models.IntegerField(null=True)

    class Meta:
        constraints: ClassVar = [
            RowSecurity(name="outcome_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="outcome_age", column="occurred_at", days=62),
            _allow_user_id_replacement("outcome_renamed", "tenants_outcome"),
        ]
        indexes: ClassVar = [
            # Reader: rollups, for the outcomes of an hour's completions.
            models.Index(fields=["tenant", "request_id"], name="outcome_request"),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.request_id}"


class TypingReport(models.Model):
    """A number of typed characters. `caret.contracts.usage.TypingRecord` documents the columns."""

    pk = models.CompositePrimaryKey("tenant_id", "occurred_at", "report_id")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, db_index=False, related_name="+")
    occurred_at = models.DateTimeField()
    report_id = models.UUIDField()
    user_id = models.UUIDField(null=True)  # None: a service key
    language = models.TextField()
    editor = models.TextField()
    chars = models.IntegerField()  # typed by hand

    class Meta:
        db_table = "tenants_typing_report"
        constraints: ClassVar = [
            RowSecurity(name="typed_tenant", privileges=APPEND_ONLY),
            DeletableAfter(name="typed_age", column="occurred_at", days=62),
            _allow_user_id_replacement("typed_renamed", "tenants_typing_report"),
        ]

    def __str__(self) -> str:
        return str(self.report_id)


# Partitioned by occurred_at; `manage.py create_partitions` creates the monthly partitions.
PARTITIONED_TABLES = (
    UsageRecord._meta.db_table,
    Outcome._meta.db_table,
    TypingReport._meta.db_table,
)
