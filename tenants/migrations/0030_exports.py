"""Exports that are built in the background, and the objects that they are made of."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security

BIND = """
ALTER TABLE tenants_export_object ADD CONSTRAINT tenants_export_object_build
    FOREIGN KEY (tenant_id, build_id) REFERENCES tenants_export_job (tenant_id, id);
ALTER TABLE tenants_export_job ADD CONSTRAINT tenants_export_build_requested_by
    FOREIGN KEY (tenant_id, requested_by_id) REFERENCES tenants_membership (tenant_id, user_id);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0029_erasure"),
    ]

    operations = [
        migrations.CreateModel(
            name="ExportJob",
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
                ("definition", models.TextField()),
                ("media", models.TextField()),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("requested_by_key", models.CharField(max_length=40)),
                ("state", models.TextField()),
                ("error", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("began_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("num_attempts", models.PositiveIntegerField(default=0)),
                ("members", models.JSONField()),
                ("rows_done", models.BigIntegerField(default=0)),
                ("rows_expected", models.BigIntegerField(null=True)),
                ("name", models.TextField()),
                ("num_bytes", models.BigIntegerField(default=0)),
                ("proof", models.TextField()),
                ("expires_at", models.DateTimeField(null=True)),
                ("swept_at", models.DateTimeField(null=True)),
                (
                    "requested_by",
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
                "db_table": "tenants_export_job",
                "indexes": [
                    models.Index(
                        fields=["tenant", "created_at", "id"], name="export_build_created"
                    ),
                    models.Index(
                        condition=models.Q(("swept_at", None)),
                        fields=["tenant", "state"],
                        name="export_build_unswept",
                    ),
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="export_build_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ExportObject",
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
                ("build_id", models.UUIDField()),
                ("member", models.PositiveSmallIntegerField(null=True)),
                ("number", models.PositiveIntegerField()),
                ("stored_at", models.DateTimeField(null=True)),
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
                "db_table": "tenants_export_object",
                "indexes": [
                    models.Index(
                        fields=["tenant", "build_id", "member", "number"],
                        name="export_object_order",
                    )
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="export_object_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.RunSQL(BIND, migrations.RunSQL.noop),
    ]
