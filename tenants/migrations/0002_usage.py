"""Usage: two tables partitioned by month, each with its row policy and its grants."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security
from caret.foundation.postgres.partitions import CreatePartitionedModel


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
    ]

    operations = [
        CreatePartitionedModel(
            name="Outcome",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "occurred_at",
                        "outcome_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("occurred_at", models.DateTimeField()),
                ("outcome_id", models.UUIDField()),
                ("request_id", models.UUIDField()),
                ("user_id", models.UUIDField(null=True)),
                ("event", models.TextField()),
                ("chars", models.IntegerField()),
                ("after_ms", models.IntegerField()),
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
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="outcome_tenant", privileges=("SELECT", "INSERT"), user_column=None
                    )
                ],
            },
        ),
        CreatePartitionedModel(
            name="UsageRecord",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "occurred_at",
                        "request_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("occurred_at", models.DateTimeField()),
                ("request_id", models.UUIDField()),
                ("user_id", models.UUIDField(null=True)),
                ("key_id", models.UUIDField()),
                ("protocol", models.TextField()),
                ("mode", models.TextField()),
                ("language", models.TextField()),
                ("tier", models.TextField()),
                ("pool", models.TextField()),
                ("replica", models.TextField()),
                ("finish", models.TextField()),
                ("error_code", models.TextField()),
                ("prompt_tokens", models.IntegerField()),
                ("cached_tokens", models.IntegerField(null=True)),
                ("generated_tokens", models.IntegerField()),
                ("assemble_ms", models.FloatField(null=True)),
                ("first_token_ms", models.FloatField(null=True)),
                ("engine_ms", models.FloatField(null=True)),
                ("total_ms", models.FloatField()),
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
                "db_table": "tenants_usage_record",
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="usage_record_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    )
                ],
            },
        ),
    ]
