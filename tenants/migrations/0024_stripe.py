"""Reports to Stripe."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0023_telemetry_content"),
    ]

    operations = [
        migrations.CreateModel(
            name="StripeCustomer",
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
                ("customer_id", models.CharField(max_length=80)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "tenants_stripe_customer",
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="stripe_customer_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StripeEvent",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "identifier",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("identifier", models.CharField(max_length=100)),
                ("event_name", models.CharField(max_length=100)),
                ("quantity", models.BigIntegerField()),
                ("occurred_at", models.DateTimeField()),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("doubtful_since", models.DateTimeField(null=True)),
                ("next_at", models.DateTimeField(null=True)),
                ("sent_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(max_length=200)),
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
                "db_table": "tenants_stripe_event",
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["tenant", "next_at"],
                        name="stripe_event_due",
                    ),
                    models.Index(fields=["tenant", "occurred_at"], name="stripe_event_month"),
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="stripe_event_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    )
                ],
            },
        ),
    ]
