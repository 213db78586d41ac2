"""Policies say something of teams and users beyond the tenant's, and which key has set them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0024_stripe"),
    ]

    operations = [
        migrations.AddField(
            model_name="policyversion",
            name="author_key",
            field=models.CharField(db_default="", default="", max_length=40),
        ),
        migrations.CreateModel(
            name="PolicyOverrideVersion",
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
                ("subject_kind", models.CharField(max_length=8)),
                ("subject_id", models.UUIDField()),
                ("version", models.PositiveIntegerField()),
                ("document", models.JSONField()),
                ("author_key", models.CharField(max_length=40)),
                ("reason", models.TextField()),
                ("created_at", models.DateTimeField()),
                (
                    "author",
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
            ],
            options={
                "db_table": "tenants_policy_override_version",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "subject_kind", "subject_id", "version"),
                        name="policy_layer_version_once",
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="policy_layer_version_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    ),
                ],
            },
        ),
    ]
