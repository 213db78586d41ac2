"""Retention: rules, legal holds, purges, certificates; what is old may be deleted."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0025_policy_layers"),
        ("tenants", "__first__"),
    ]

    operations = [
        migrations.CreateModel(
            name="DeletionCertificate",
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
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("number", models.PositiveIntegerField()),
                ("document", models.TextField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant", "created_at", "id"], name="deletion_certificate_created"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "number"), name="deletion_certificate_number"
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="deletion_certificate_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="LegalHold",
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
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=caret.foundation.ids.uuid7, editable=False)),
                ("name", models.CharField(max_length=120)),
                ("user_id", models.UUIDField(null=True)),
                ("since", models.DateTimeField(null=True)),
                ("until", models.DateTimeField(null=True)),
                ("reason", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("released_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["tenant", "created_at", "id"], name="legal_hold_created")
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="legal_hold_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PurgeRun",
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
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                ("id", models.UUIDField(default=caret.foundation.ids.uuid7, editable=False)),
                ("data_class", models.CharField(max_length=40)),
                ("days", models.PositiveIntegerField()),
                ("rule_version", models.PositiveIntegerField(null=True)),
                ("cutoff", models.DateTimeField()),
                ("opening", models.BigIntegerField()),
                ("deleted", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
                ("closing", models.BigIntegerField(null=True)),
                ("held", models.BigIntegerField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["tenant", "data_class", "created_at"], name="purge_run_class"
                    ),
                    models.Index(fields=["tenant", "created_at", "id"], name="purge_run_created"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)),
                        fields=("tenant", "data_class"),
                        name="purge_run_one_at_a_time",
                    ),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="purge_run_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionRule",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "data_class",
                        "version",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
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
                ("data_class", models.CharField(max_length=40)),
                ("version", models.PositiveIntegerField()),
                ("days", models.PositiveIntegerField()),
                ("reason", models.TextField()),
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
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="retention_rule_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="usagerecord",
            constraint=caret.foundation.postgres.row_security.DeletableAfter(
                column="occurred_at", days=62, name="usage_record_age"
            ),
        ),
        migrations.AddConstraint(
            model_name="outcome",
            constraint=caret.foundation.postgres.row_security.DeletableAfter(
                column="occurred_at", days=62, name="outcome_age"
            ),
        ),
        migrations.AddConstraint(
            model_name="typingreport",
            constraint=caret.foundation.postgres.row_security.DeletableAfter(
                column="occurred_at", days=62, name="typed_age"
            ),
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=caret.foundation.postgres.row_security.DeletableAfter(
                column="at", days=366, name="audit_entry_age"
            ),
        ),
    ]
