"""Usage by hour and day, the hours that are still to be counted, and how far that is."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

from caret.foundation.postgres.row_security import READ_WRITE, RowSecurity

_COUNTS = (
    *("requests", "completed", "cancelled", "shed", "filtered", "errors"),
    *("suggestions", "suggested_chars", "suggested_lines", "parsed", "parsed_valid"),
    *("prompt_tokens", "prompt_tokens_with_cache_info", "cached_tokens", "generated_tokens"),
    *("shown", "seen", "accepted", "partly_accepted", "rejected"),
    *("shown_chars", "seen_chars", "accepted_chars", "shown_lines", "accepted_lines"),
    "accepted_tokens",
    *("looked_at_15", "retained_15", "looked_at_30", "retained_30"),
    *("looked_at_120", "retained_120", "looked_at_300", "retained_300"),
    *("looked_at_600", "retained_600", "looked_at_1800", "retained_1800"),
    "typed_chars",
)
_KEYS = ("tenant_id", "starts_at", "user_id", "editor", "language", "model", "variant")


def _key(*columns: str) -> models.CompositePrimaryKey:
    return models.CompositePrimaryKey(
        *columns, blank=True, editable=False, primary_key=True, serialize=False
    )


def _tenant() -> models.ForeignKey:  # type: ignore[type-arg]  # as the models' own
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to="tenants.tenant",
    )


def _rolled(name: str, *, table: str, rule: str) -> migrations.CreateModel:
    return migrations.CreateModel(
        name=name,
        fields=[
            ("pk", _key(*_KEYS)),
            ("starts_at", models.DateTimeField()),
            ("user_id", models.UUIDField()),
            *((key, models.TextField()) for key in ("editor", "language", "model", "variant")),
            *((count, models.BigIntegerField(default=0)) for count in _COUNTS),
            ("tenant", _tenant()),
        ],
        options={
            "db_table": table,
            "abstract": False,
            "constraints": [RowSecurity(name=rule, privileges=READ_WRITE)],
        },
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0013_people"),
    ]

    operations = [
        _rolled("UsageHour", table="tenants_usage_hour", rule="usage_hour_tenant"),
        _rolled("UsageDay", table="tenants_usage_day", rule="usage_day_tenant"),
        migrations.CreateModel(
            name="DirtyHour",
            fields=[
                ("pk", _key("tenant_id", "hour", "mark_id")),
                ("hour", models.DateTimeField()),
                ("mark_id", models.UUIDField(default=uuid.uuid4)),
                ("tenant", _tenant()),
            ],
            options={
                "db_table": "tenants_dirty_hour",
                "constraints": [
                    RowSecurity(
                        name="rollup_mark_tenant", privileges=("SELECT", "INSERT", "DELETE")
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RollupState",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("complete_until", models.DateTimeField()),
            ],
            options={
                "db_table": "tenants_rollup_state",
                "constraints": [
                    RowSecurity(
                        name="rollup_state_tenant", privileges=("SELECT", "INSERT", "UPDATE")
                    )
                ],
            },
        ),
    ]
