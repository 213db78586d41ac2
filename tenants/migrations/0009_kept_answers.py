"""Responses to requests that may be sent again."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0008_audit_chain_contract"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("caller", models.CharField(max_length=120)),
                ("key_digest", models.BinaryField()),
                ("request_digest", models.BinaryField()),
                ("status", models.PositiveSmallIntegerField()),
                ("sealed_body", models.BinaryField()),
                ("created_at", models.DateTimeField()),
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
                "db_table": "tenants_idempotency_record",
                "indexes": [models.Index(fields=["tenant", "created_at"], name="kept_answer_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "caller", "key_digest"), name="kept_answer_key"
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="kept_answer_tenant",
                        privileges=("SELECT", "INSERT", "DELETE"),
                        user_column=None,
                    ),
                ],
            },
        ),
    ]
