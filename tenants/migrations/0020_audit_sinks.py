"""Where tenants have their audit entries pushed to: one table and its row policy."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0019_scim"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditSink",
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
                ("kind", models.CharField(max_length=12)),
                ("name", models.CharField(max_length=120)),
                ("origin", models.CharField(max_length=300)),
                ("sealed", models.BinaryField()),
                ("created_at", models.DateTimeField()),
                ("delivered_sequence", models.PositiveBigIntegerField()),
                ("delivered_at", models.DateTimeField(null=True)),
                ("failed_since", models.DateTimeField(null=True)),
                ("last_error", models.CharField(max_length=200)),
                ("num_failures", models.PositiveIntegerField(default=0)),
                ("next_attempt_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
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
                    models.UniqueConstraint(fields=("tenant", "name"), name="audit_sink_name"),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="audit_sink_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        user_column=None,
                    ),
                ],
            },
        ),
    ]
