"""Receipts of consent: one append-only table."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0014_rollups"),
    ]

    operations = [
        migrations.CreateModel(
            name="ConsentReceipt",
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
                ("id", models.UUIDField(default=caret.foundation.ids.uuid7, editable=False)),
                ("number", models.PositiveBigIntegerField()),
                ("kind", models.TextField()),
                ("is_given", models.BooleanField()),
                ("wording", models.TextField()),
                ("wording_sha256", models.TextField()),
                ("policy_version", models.PositiveIntegerField(null=True)),
                ("address", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                (
                    "actor",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "tenants_consent_receipt",
                "indexes": [
                    models.Index(
                        fields=["tenant", "user", "kind", "number"], name="consent_receipt_last"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "number"), name="consent_receipt_number"
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="consent_receipt_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    ),
                ],
            },
        ),
    ]
