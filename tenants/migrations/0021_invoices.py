"""Invoices and credit notes, and whom they are made out to."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0020_audit_sinks"),
    ]

    operations = [
        migrations.CreateModel(
            name="BillingProfile",
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
                ("customer", models.JSONField()),
                ("tax_name", models.CharField(max_length=40)),
                ("tax_basis_points", models.PositiveIntegerField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "db_table": "tenants_billing_profile",
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="billing_profile_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Invoice",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "number",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("id", models.UUIDField()),
                ("name", models.CharField(max_length=60)),
                ("kind", models.CharField(max_length=12)),
                ("month", models.DateField()),
                ("corrects", models.PositiveIntegerField(null=True)),
                ("head", models.JSONField()),
                ("total_micros", models.BigIntegerField()),
                ("digest", models.BinaryField()),
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
                "indexes": [
                    models.Index(fields=["tenant", "-created_at", "-id"], name="invoice_newest")
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="invoice_tenant", privileges=("SELECT", "INSERT"), user_column=None
                    )
                ],
            },
        ),
    ]
