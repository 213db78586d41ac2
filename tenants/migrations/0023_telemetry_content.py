"""Content that users let be kept: where it lies, and that it was erased."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security

BIND_ERASURE = """
ALTER TABLE tenants_content_object ADD CONSTRAINT tenants_content_object_erasure
    FOREIGN KEY (tenant_id, erasure_id) REFERENCES tenants_content_erasure (tenant_id, id);
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0022_sign_in"),
    ]

    operations = [
        migrations.CreateModel(
            name="ContentErasure",
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
                ("reason", models.TextField()),
                ("num_objects", models.PositiveIntegerField()),
                ("num_items", models.PositiveIntegerField()),
                ("num_bytes", models.PositiveBigIntegerField()),
                ("keys", models.JSONField()),
                ("requested_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
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
                "db_table": "tenants_content_erasure",
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="content_erasure_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ContentObject",
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
                    "request_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), size=None
                    ),
                ),
                ("num_items", models.PositiveIntegerField()),
                ("num_bytes", models.PositiveBigIntegerField()),
                ("is_for_training", models.BooleanField()),
                ("created_at", models.DateTimeField()),
                ("stored_at", models.DateTimeField(null=True)),
                ("erasure_id", models.UUIDField(null=True)),
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
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "tenants_content_object",
                "indexes": [
                    models.Index(fields=["tenant", "user"], name="content_object_user"),
                    models.Index(fields=["tenant", "created_at"], name="content_object_age"),
                    models.Index(
                        condition=models.Q(("erasure_id__isnull", False)),
                        fields=["tenant", "erasure_id"],
                        name="content_object_erased",
                    ),
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="content_object_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.RunSQL(
            BIND_ERASURE,
            "ALTER TABLE tenants_content_object DROP CONSTRAINT tenants_content_object_erasure",
        ),
    ]
