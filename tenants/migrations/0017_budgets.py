"""Budgets, what is spent of them, their alerts and these on their way."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security

# An alert's deliveries are its tenant's own.
BIND = """
ALTER TABLE tenants_alert_delivery ADD CONSTRAINT tenants_alert_delivery_alert
  FOREIGN KEY (tenant_id, alert_id) REFERENCES tenants_budget_alert (tenant_id, id);
"""
UNBIND = "ALTER TABLE tenants_alert_delivery DROP CONSTRAINT tenants_alert_delivery_alert;"


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0016_min_group_users"),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertDelivery",
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
                ("alert_id", models.UUIDField()),
                ("channel", models.CharField(max_length=8)),
                ("address", models.CharField(max_length=500)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("next_at", models.DateTimeField(null=True)),
                ("delivered_at", models.DateTimeField(null=True)),
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
                "db_table": "tenants_alert_delivery",
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["tenant", "next_at"],
                        name="alert_delivery_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "alert_id", "channel", "address"),
                        name="alert_delivery_once",
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="alert_delivery_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Budget",
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
                (
                    "scope",
                    models.CharField(
                        choices=[("tenant", "TENANT"), ("team", "TEAM"), ("user", "USER")],
                        max_length=8,
                    ),
                ),
                ("holder_id", models.UUIDField(null=True)),
                ("limit_micros", models.BigIntegerField()),
                ("is_hard", models.BooleanField(default=True)),
                ("webhook_url", models.CharField(max_length=500)),
                ("version", models.PositiveIntegerField(default=1)),
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
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "scope", "holder_id"),
                        name="budget_once",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("limit_micros__gt", 0)), name="budget_limit_positive"
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="budget_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="BudgetAlert",
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
                ("budget_id", models.UUIDField()),
                ("month", models.DateField()),
                ("percent", models.PositiveSmallIntegerField()),
                ("spent_micros", models.BigIntegerField()),
                ("limit_micros", models.BigIntegerField()),
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
                "db_table": "tenants_budget_alert",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "budget_id", "month", "percent"), name="budget_alert_once"
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="budget_alert_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MonthSpend",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "month",
                        "holder",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("month", models.DateField()),
                ("holder", models.CharField(max_length=36)),
                ("micros", models.BigIntegerField()),
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
                "db_table": "tenants_month_spend",
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="month_spend_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.RunSQL(BIND, UNBIND),
    ]
