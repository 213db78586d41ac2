"""Pools of tenants, the model catalogue, and what the gateways can do."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_usage_finish_reason"),
    ]

    operations = [
        migrations.CreateModel(
            name="CapabilityChange",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=caret.foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("capability", models.CharField(max_length=64)),
                ("is_available", models.BooleanField()),
                ("since", models.DateTimeField()),
            ],
            options={
                "db_table": "tenants_capability_change",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("capability", "since"), name="capability_change_once"
                    ),
                    caret.foundation.postgres.row_security.Grants(
                        name="capability_change_grants",
                        privileges=("SELECT", "INSERT"),
                        reason="describes the installation, not a tenant",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CatalogModel",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=caret.foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                (
                    "tier",
                    models.CharField(
                        choices=[("fast", "FAST"), ("quality", "QUALITY")], max_length=8
                    ),
                ),
                ("title", models.CharField(max_length=120)),
                ("pools", models.JSONField()),
                ("plans", models.JSONField()),
                ("position", models.PositiveSmallIntegerField()),
                ("is_published", models.BooleanField()),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "db_table": "tenants_catalog_model",
                "constraints": [
                    models.UniqueConstraint(fields=("tier", "name"), name="catalog_model_once"),
                    caret.foundation.postgres.row_security.Grants(
                        name="catalog_model_grants",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        reason="the platform's list of models belongs to no tenant",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PoolAssignment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=caret.foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "tier",
                    models.CharField(
                        choices=[("fast", "FAST"), ("quality", "QUALITY")], max_length=8
                    ),
                ),
                ("language", models.CharField(default="*", max_length=40)),
                ("pool", models.CharField(max_length=120)),
                ("is_dedicated", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField()),
                (
                    "holder",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "tenants_pool_assignment",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("holder", "tier", "language"), name="pool_assignment_once"
                    ),
                    caret.foundation.postgres.row_security.Grants(
                        name="pool_assignment_grants",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        reason="dedicated pools are found over all tenants; only operators read the names",
                    ),
                ],
            },
        ),
    ]
