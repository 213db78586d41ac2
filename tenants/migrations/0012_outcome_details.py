"""Outcomes: lines, persistence, editor, model, what a parser judged; and what was typed by hand."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security
from caret.foundation.postgres.partitions import CreatePartitionedModel


def _add(model: str, name: str, field: "models.Field[Any, Any]") -> migrations.AddField:
    """Nullable: expand only."""
    return migrations.AddField(model_name=model, name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0011_keyring"),
    ]

    operations = [
        CreatePartitionedModel(
            name="TypingReport",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "occurred_at",
                        "typed_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("occurred_at", models.DateTimeField()),
                ("typed_id", models.UUIDField()),
                ("user_id", models.UUIDField(null=True)),
                ("language", models.TextField()),
                ("editor", models.TextField()),
                ("chars", models.IntegerField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "tenants_typing_report",
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="typed_tenant", privileges=("SELECT", "INSERT"), user_column=None
                    )
                ],
            },
        ),
        _add("outcome", "edited_ratio", models.FloatField(null=True)),
        _add("outcome", "lines", models.IntegerField(null=True)),
        _add("outcome", "span_s", models.IntegerField(null=True)),
        _add("usagerecord", "editor", models.TextField(null=True)),
        _add("usagerecord", "is_parsed", models.BooleanField(null=True)),
        _add("usagerecord", "model", models.TextField(null=True)),
        _add("usagerecord", "num_chars", models.IntegerField(null=True)),
        _add("usagerecord", "num_lines", models.IntegerField(null=True)),
        migrations.AddIndex(
            model_name="outcome",
            index=models.Index(fields=["tenant", "request_id"], name="outcome_request"),
        ),
    ]
