"""All tables with their row security and grants, in the order of their references.

`0002_keys_triggers_and_grants` has the rules that models cannot express.
"""

import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.text
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models
from pgvector.django import VectorExtension

import caret.foundation.ids
import caret.foundation.postgres.row_security
import tenants.models.api_key
from caret.foundation.postgres.create_models import CreateModels
from caret.foundation.postgres.partitions import CreatePartitionedModel


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        VectorExtension(),
        CreateModels(
            [
                migrations.CreateModel(
                    name="Tenant",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=uuid.uuid4,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("slug", models.SlugField(max_length=63, unique=True)),
                        ("name", models.CharField(max_length=120)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("active", "ACTIVE"),
                                    ("suspended", "SUSPENDED"),
                                    ("closing", "CLOSING"),
                                    ("closed", "CLOSED"),
                                ],
                                max_length=12,
                            ),
                        ),
                        ("region", models.CharField(default="local", max_length=32)),
                        ("is_mfa_required", models.BooleanField(default=False)),
                        ("cache_epoch", models.PositiveIntegerField(default=0)),
                        ("snapshot_version", models.PositiveBigIntegerField(default=0)),
                        ("published_version", models.PositiveBigIntegerField(default=0)),
                        ("min_group_users", models.PositiveSmallIntegerField(default=5)),
                        ("max_concurrent_completions", models.PositiveIntegerField(null=True)),
                        ("max_requests_per_minute", models.PositiveIntegerField(null=True)),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.Grants(
                                name="tenant_grants",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                reason="the list of tenants is read before a tenant is known; no customer content",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="User",
                    fields=[
                        ("password", models.CharField(max_length=128, verbose_name="password")),
                        (
                            "last_login",
                            models.DateTimeField(blank=True, null=True, verbose_name="last login"),
                        ),
                        (
                            "id",
                            models.UUIDField(
                                default=uuid.uuid4,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("email", models.EmailField(max_length=254, unique=True)),
                        ("name", models.CharField(max_length=120)),
                        ("is_active", models.BooleanField(default=True)),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("email", django.db.models.functions.text.Lower("email"))
                                ),
                                name="user_email_lower",
                            ),
                            caret.foundation.postgres.row_security.Grants(
                                name="user_grants",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                reason="users sign in before a tenant is known",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Operator",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=uuid.uuid4,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("handle", models.CharField(max_length=20, unique=True)),
                        ("name", models.CharField(max_length=120)),
                        (
                            "role",
                            models.CharField(
                                choices=[("support", "SUPPORT"), ("admin", "ADMIN")], max_length=12
                            ),
                        ),
                        ("password", models.CharField(max_length=128)),
                        ("sealed_factor", models.BinaryField()),
                        ("last_step", models.BigIntegerField(default=0)),
                        ("created_at", models.DateTimeField()),
                        ("disabled_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.Grants(
                                name="operator_grants",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                reason="the platform's own people, who belong to no tenant",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="OperatorKey",
                    fields=[
                        (
                            "id",
                            models.UUIDField(
                                default=uuid.uuid4,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("lookup_id", models.CharField(max_length=8, unique=True)),
                        ("digest", models.BinaryField()),
                        ("pepper_version", models.PositiveSmallIntegerField()),
                        ("name", models.CharField(max_length=120)),
                        (
                            "scopes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(max_length=40), size=None
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField()),
                        ("revoked_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.Grants(
                                name="operator_key_grants",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                reason="the platform's own scripts, which belong to no tenant",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ApiKey",
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
                        ("lookup_id", models.CharField(max_length=8)),
                        ("digest", models.BinaryField()),
                        ("pepper_version", models.PositiveSmallIntegerField()),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("live", "DEVELOPER"),
                                    ("test", "TEST"),
                                    ("svc", "SERVICE"),
                                ],
                                max_length=8,
                            ),
                        ),
                        (
                            "owner",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "created_by",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "issued_by",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("name", models.CharField(max_length=120)),
                        (
                            "scopes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(max_length=40),
                                default=tenants.models.api_key.list_default_scopes,
                                size=None,
                            ),
                        ),
                        (
                            "networks",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.CharField(max_length=64), default=list, size=None
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                        ("issued_at", models.DateTimeField(null=True)),
                        ("previous_digest", models.BinaryField(null=True)),
                        ("previous_pepper_version", models.PositiveSmallIntegerField(null=True)),
                        ("previous_ends_at", models.DateTimeField(null=True)),
                        ("expires_at", models.DateTimeField(null=True)),
                        ("revoked_at", models.DateTimeField(null=True)),
                        ("last_used_at", models.DateTimeField(null=True)),
                        ("is_playground", models.BooleanField(db_default=False)),
                        ("leaked_at", models.DateTimeField(null=True)),
                        ("leak_notified_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["tenant", "owner"], name="api_key_owner"),
                            models.Index(fields=["lookup_id"], name="api_key_presented"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "lookup_id"), name="api_key_lookup"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                lookup_column="lookup_id",
                                name="api_key_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AuditEntry",
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
                        (
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("sequence", models.PositiveBigIntegerField()),
                        ("previous_hash", models.BinaryField()),
                        ("hash", models.BinaryField()),
                        ("actor_kind", models.CharField(max_length=12)),
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
                        ("actor_key", models.CharField(max_length=40)),
                        ("action", models.CharField(max_length=60)),
                        ("target", models.CharField(max_length=200)),
                        ("before", models.JSONField(null=True)),
                        ("after", models.JSONField(null=True)),
                        ("address", models.GenericIPAddressField(null=True)),
                        ("request_id", models.CharField(max_length=64)),
                        ("reason", models.TextField()),
                        ("at", models.DateTimeField()),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["tenant", "at", "id"], name="audit_entry_at"),
                            models.Index(
                                fields=["tenant", "target", "at"], name="audit_entry_target"
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "sequence"), name="audit_entry_sequence"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="audit_entry_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            ),
                            caret.foundation.postgres.row_security.DeletableAfter(
                                column="at", days=366, name="audit_entry_age"
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="AuditHead",
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
                        ("sequence", models.PositiveBigIntegerField()),
                        ("hash", models.BinaryField()),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="audit_head_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="SignedAuditHead",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "sequence",
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
                        ("sequence", models.PositiveBigIntegerField()),
                        ("hash", models.BinaryField()),
                        ("signed_at", models.DateTimeField()),
                        ("key_id", models.CharField(max_length=16)),
                        ("signature", models.BinaryField()),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="signed_audit_head_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            )
                        ],
                    },
                ),
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
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "name"), name="audit_sink_name"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="audit_sink_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
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
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "scope", "holder_id"),
                                name="budget_once",
                                nulls_distinct=False,
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("limit_micros__gt", 0)),
                                name="budget_limit_positive",
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
                        (
                            "tenant",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                        ("month", models.DateField()),
                        ("holder", models.CharField(max_length=36)),
                        ("micros", models.BigIntegerField()),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("budget_id", models.UUIDField()),
                        ("month", models.DateField()),
                        ("percent", models.PositiveSmallIntegerField()),
                        ("spent_micros", models.BigIntegerField()),
                        ("limit_micros", models.BigIntegerField()),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_budget_alert",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "budget_id", "month", "percent"),
                                name="budget_alert_once",
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("alert_id", models.UUIDField()),
                        ("channel", models.CharField(max_length=8)),
                        ("address", models.CharField(max_length=500)),
                        ("attempts", models.PositiveSmallIntegerField(default=0)),
                        ("next_at", models.DateTimeField(null=True)),
                        ("delivered_at", models.DateTimeField(null=True)),
                        ("last_error", models.CharField(max_length=200)),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
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
                        ("reason", models.TextField()),
                        ("num_objects", models.PositiveIntegerField()),
                        ("num_items", models.PositiveIntegerField()),
                        ("num_bytes", models.PositiveBigIntegerField()),
                        ("keys", models.JSONField()),
                        ("requested_at", models.DateTimeField()),
                        ("finished_at", models.DateTimeField(null=True)),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
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
                    ],
                    options={
                        "db_table": "tenants_content_object",
                        "indexes": [
                            models.Index(fields=["tenant", "user"], name="content_object_user"),
                            models.Index(
                                fields=["tenant", "created_at"], name="content_object_age"
                            ),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("number", models.PositiveBigIntegerField()),
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
                        ("kind", models.TextField()),
                        ("is_given", models.BooleanField()),
                        ("wording", models.TextField()),
                        ("wording_sha256", models.TextField()),
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
                        ("policy_version", models.PositiveIntegerField(null=True)),
                        ("address", models.GenericIPAddressField(null=True)),
                        ("request_id", models.CharField(max_length=64)),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_consent_receipt",
                        "indexes": [
                            models.Index(
                                fields=["tenant", "user", "kind", "number"],
                                name="consent_receipt_last",
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
                migrations.CreateModel(
                    name="RootKeyUse",
                    fields=[
                        ("id", models.TextField(primary_key=True, serialize=False)),
                        ("canary", models.BinaryField()),
                        ("created_at", models.DateTimeField()),
                        ("retired_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "db_table": "keyring_root_key",
                        "constraints": [
                            caret.foundation.postgres.row_security.Grants(
                                name="root_key_use_grants",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                reason="at startup, before a tenant is known, a process checks that it has the root keys; no customer content",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TenantKey",
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
                        ("root_key_id", models.TextField()),
                        ("wrapped", models.BinaryField(null=True)),
                        ("fingerprint", models.BinaryField()),
                        ("created_at", models.DateTimeField()),
                        ("retired_at", models.DateTimeField(null=True)),
                        ("destroyed_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "db_table": "keyring_tenant_key",
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("retired_at", None)),
                                fields=("tenant",),
                                name="tenant_key_one_in_force",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("destroyed_at__isnull", False), ("wrapped", None)),
                                    models.Q(("destroyed_at", None), ("wrapped__isnull", False)),
                                    _connector="OR",
                                ),
                                name="tenant_key_destroyed_or_wrapped",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("destroyed_at", None),
                                    ("retired_at__isnull", False),
                                    _connector="OR",
                                ),
                                name="tenant_key_destroyed_is_retired",
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="tenant_key_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DataKey",
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
                        ("tenant_key_id", models.UUIDField()),
                        ("scope", models.TextField()),
                        ("wrapped", models.BinaryField(null=True)),
                        ("fingerprint", models.BinaryField()),
                        ("witness", models.BinaryField()),
                        ("created_at", models.DateTimeField()),
                        ("destroyed_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "db_table": "keyring_data_key",
                        "indexes": [
                            models.Index(
                                condition=models.Q(("destroyed_at", None)),
                                fields=["tenant", "tenant_key_id"],
                                name="data_key_wrapped_by",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("destroyed_at", None)),
                                fields=("tenant", "scope"),
                                name="data_key_one_of_scope",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("destroyed_at__isnull", False), ("wrapped", None)),
                                    models.Q(("destroyed_at", None), ("wrapped__isnull", False)),
                                    _connector="OR",
                                ),
                                name="data_key_destroyed_or_wrapped",
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="data_key_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Erasure",
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
                        (
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("user_id", models.UUIDField(null=True)),
                        ("reason", models.TextField()),
                        ("requested_by_id", models.UUIDField(null=True)),
                        ("secret", models.BinaryField(null=True)),
                        ("keys", models.JSONField()),
                        ("counts", models.JSONField()),
                        ("held_by", models.JSONField()),
                        ("requested_at", models.DateTimeField()),
                        ("finished_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                fields=["tenant", "requested_at", "id"], name="erasure_requested"
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("finished_at", None)),
                                fields=("tenant", "user_id"),
                                name="erasure_one_at_a_time",
                                nulls_distinct=False,
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("finished_at", None), ("secret__isnull", False)),
                                    models.Q(("finished_at__isnull", False), ("secret", None)),
                                    _connector="OR",
                                ),
                                name="erasure_finished_without_secret",
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="erasure_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("definition", models.TextField()),
                        ("media", models.TextField()),
                        ("since", models.DateTimeField()),
                        ("until", models.DateTimeField()),
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("build_id", models.UUIDField()),
                        ("member", models.PositiveSmallIntegerField(null=True)),
                        ("number", models.PositiveIntegerField()),
                        ("stored_at", models.DateTimeField(null=True)),
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
                migrations.CreateModel(
                    name="IdempotencyRecord",
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
                        ("caller", models.CharField(max_length=120)),
                        ("key_digest", models.BinaryField()),
                        ("request_digest", models.BinaryField()),
                        ("status", models.PositiveSmallIntegerField()),
                        ("sealed_body", models.BinaryField()),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_idempotency_record",
                        "indexes": [
                            models.Index(fields=["tenant", "created_at"], name="kept_answer_age")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "caller", "key_digest"), name="kept_answer_key"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="kept_answer_tenant",
                                privileges=("SELECT", "INSERT", "DELETE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LedgerAccount",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "code",
                                "currency",
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
                        ("code", models.CharField(max_length=40)),
                        ("currency", models.CharField(max_length=3)),
                    ],
                    options={
                        "db_table": "tenants_ledger_account",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="ledger_account_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LedgerTransaction",
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
                        (
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("source_kind", models.CharField(max_length=16)),
                        ("source_id", models.CharField(max_length=80)),
                        ("currency", models.CharField(max_length=3)),
                        ("day", models.DateField()),
                        ("month", models.DateField()),
                        ("memo", models.CharField(max_length=200)),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_ledger_transaction",
                        "indexes": [
                            models.Index(
                                fields=["tenant", "month"], name="ledger_transaction_month"
                            ),
                            models.Index(
                                fields=["tenant", "-created_at", "-id"],
                                name="ledger_transaction_newest",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "source_kind", "source_id"),
                                name="ledger_transaction_source",
                            ),
                            models.UniqueConstraint(
                                fields=("tenant", "id", "currency"),
                                name="ledger_transaction_currency",
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="ledger_transaction_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LedgerEntry",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "transaction_id",
                                "position",
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
                        ("transaction_id", models.UUIDField()),
                        ("position", models.PositiveSmallIntegerField()),
                        ("account", models.CharField(max_length=40)),
                        ("currency", models.CharField(max_length=3)),
                        ("amount_micros", models.BigIntegerField()),
                        ("line", models.CharField(max_length=40)),
                        ("day", models.DateField()),
                        ("quantity", models.BigIntegerField()),
                        ("running", models.BigIntegerField()),
                        ("price_micros", models.BigIntegerField()),
                    ],
                    options={
                        "db_table": "tenants_ledger_entry",
                        "indexes": [
                            models.Index(
                                fields=["tenant", "day", "line", "-running"],
                                name="ledger_entry_running",
                            )
                        ],
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="ledger_entry_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            )
                        ],
                    },
                ),
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
                        (
                            "tenant",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.tenant",
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
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                fields=["tenant", "-created_at", "-id"], name="invoice_newest"
                            )
                        ],
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="invoice_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Membership",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "user_id",
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
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("owner", "OWNER"),
                                    ("administrator", "ADMINISTRATOR"),
                                    ("billing", "BILLING"),
                                    ("auditor", "AUDITOR"),
                                    ("developer", "DEVELOPER"),
                                ],
                                max_length=16,
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("erased_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="membership_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column="user_id",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Team",
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
                        ("name", models.CharField(max_length=120)),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                models.F("tenant"),
                                django.db.models.functions.text.Lower("name"),
                                name="team_name",
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="team_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="TeamMembership",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "team_id",
                                "user_id",
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
                        ("team_id", models.UUIDField()),
                        (
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_team_membership",
                        "indexes": [
                            models.Index(fields=["tenant", "user"], name="team_membership_user")
                        ],
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="team_membership_tenant",
                                privileges=("SELECT", "INSERT", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Invitation",
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
                        ("email", models.EmailField(max_length=254)),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("owner", "OWNER"),
                                    ("administrator", "ADMINISTRATOR"),
                                    ("billing", "BILLING"),
                                    ("auditor", "AUDITOR"),
                                    ("developer", "DEVELOPER"),
                                ],
                                max_length=16,
                            ),
                        ),
                        ("digest", models.BinaryField()),
                        (
                            "invited_by",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                        ("expires_at", models.DateTimeField()),
                        ("mailed_at", models.DateTimeField(null=True)),
                        ("accepted_at", models.DateTimeField(null=True)),
                        ("revoked_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "digest"), name="invitation_digest"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="invitation_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Plan",
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
                        ("slug", models.SlugField(max_length=40, unique=True)),
                        ("name", models.CharField(max_length=120)),
                        ("currency", models.CharField(max_length=3)),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.Grants(
                                name="plan_grants",
                                privileges=("SELECT", "INSERT"),
                                reason="the platform's price list belongs to no tenant",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="PriceVersion",
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
                            "plan",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.plan",
                            ),
                        ),
                        ("effective_on", models.DateField()),
                        ("seat_month_micros", models.BigIntegerField()),
                        ("tiers", models.JSONField()),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_price_version",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("plan", "effective_on"), name="price_version_once"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("seat_month_micros__gte", 0)),
                                name="price_version_seat",
                            ),
                            caret.foundation.postgres.row_security.Grants(
                                name="price_version_grants",
                                privileges=("SELECT", "INSERT"),
                                reason="the platform's price list belongs to no tenant",
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="PolicyVersion",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
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
                        ("version", models.PositiveIntegerField()),
                        ("document", models.JSONField()),
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
                        ("author_key", models.CharField(db_default="", default="", max_length=40)),
                        ("reason", models.TextField()),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="policy_version_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            ),
                            caret.foundation.postgres.row_security.DeletableWhen(
                                condition="EXISTS (SELECT FROM tenants_erasure e WHERE e.tenant_id = tenants_policyversion.tenant_id AND e.user_id IS NULL)",
                                name="policy_version_shredded",
                            ),
                        ],
                    },
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
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("subject_kind", models.CharField(max_length=8)),
                        ("subject_id", models.UUIDField()),
                        ("version", models.PositiveIntegerField()),
                        ("document", models.JSONField()),
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
                        ("author_key", models.CharField(max_length=40)),
                        ("reason", models.TextField()),
                        ("created_at", models.DateTimeField()),
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
                            caret.foundation.postgres.row_security.DeletableWhen(
                                condition="EXISTS (SELECT FROM tenants_erasure e WHERE e.tenant_id = tenants_policy_override_version.tenant_id AND e.user_id IS NULL)",
                                name="policy_layer_version_shredded",
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
                        ("is_default", models.BooleanField(db_default=False)),
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
                        (
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
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
                            models.Index(
                                fields=["tenant", "created_at", "id"], name="legal_hold_created"
                            )
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
                        (
                            "id",
                            models.UUIDField(default=caret.foundation.ids.uuid7, editable=False),
                        ),
                        ("data_class", models.CharField(max_length=40)),
                        ("days", models.PositiveIntegerField()),
                        ("rule_version", models.PositiveIntegerField(null=True)),
                        ("cutoff", models.DateTimeField()),
                        ("opening", models.BigIntegerField()),
                        ("deleted", models.BigIntegerField(default=0)),
                        ("created_at", models.DateTimeField()),
                        ("closing", models.BigIntegerField(null=True)),
                        ("settled", models.BigIntegerField(null=True)),
                        ("held", models.BigIntegerField(null=True)),
                        ("finished_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(
                                fields=["tenant", "data_class", "created_at"],
                                name="purge_run_class",
                            ),
                            models.Index(
                                fields=["tenant", "created_at", "id"], name="purge_run_created"
                            ),
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
                                fields=["tenant", "created_at", "id"],
                                name="deletion_certificate_created",
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
                    name="RetrievalChunk",
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
                        ("id", models.UUIDField(editable=False)),
                        ("holder", models.TextField()),
                        ("scope_digest", models.BinaryField()),
                        ("file_digest", models.BinaryField()),
                        ("chunk_digest", models.BinaryField()),
                        ("sealed_name", models.BinaryField()),
                        ("sealed_text", models.BinaryField()),
                        ("embedding", pgvector.django.vector.VectorField(dimensions=384)),
                        ("created_at", models.DateTimeField()),
                        ("used_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_retrieval_chunk",
                        "indexes": [
                            models.Index(
                                fields=["tenant", "scope_digest"], name="retrieval_chunk_scope"
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "file_digest", "chunk_digest"),
                                name="retrieval_chunk_once",
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="retrieval_chunk_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="UsageHour",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "starts_at",
                                "user_id",
                                "editor",
                                "language",
                                "model",
                                "variant",
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
                        ("starts_at", models.DateTimeField()),
                        ("user_id", models.UUIDField()),
                        ("editor", models.TextField()),
                        ("language", models.TextField()),
                        ("model", models.TextField()),
                        ("variant", models.TextField()),
                        ("requests", models.BigIntegerField(default=0)),
                        ("completed", models.BigIntegerField(default=0)),
                        ("cancelled", models.BigIntegerField(default=0)),
                        ("shed", models.BigIntegerField(default=0)),
                        ("filtered", models.BigIntegerField(default=0)),
                        ("errors", models.BigIntegerField(default=0)),
                        ("suggestions", models.BigIntegerField(default=0)),
                        ("suggested_chars", models.BigIntegerField(default=0)),
                        ("suggested_lines", models.BigIntegerField(default=0)),
                        ("parsed", models.BigIntegerField(default=0)),
                        ("parsed_valid", models.BigIntegerField(default=0)),
                        ("prompt_tokens", models.BigIntegerField(default=0)),
                        ("prompt_tokens_with_cache_info", models.BigIntegerField(default=0)),
                        ("cached_tokens", models.BigIntegerField(default=0)),
                        ("generated_tokens", models.BigIntegerField(default=0)),
                        ("shown", models.BigIntegerField(default=0)),
                        ("seen", models.BigIntegerField(default=0)),
                        ("accepted", models.BigIntegerField(default=0)),
                        ("partly_accepted", models.BigIntegerField(default=0)),
                        ("rejected", models.BigIntegerField(default=0)),
                        ("shown_chars", models.BigIntegerField(default=0)),
                        ("seen_chars", models.BigIntegerField(default=0)),
                        ("accepted_chars", models.BigIntegerField(default=0)),
                        ("shown_lines", models.BigIntegerField(default=0)),
                        ("accepted_lines", models.BigIntegerField(default=0)),
                        ("accepted_tokens", models.BigIntegerField(default=0)),
                        ("looked_at_15", models.BigIntegerField(default=0)),
                        ("retained_15", models.BigIntegerField(default=0)),
                        ("looked_at_30", models.BigIntegerField(default=0)),
                        ("retained_30", models.BigIntegerField(default=0)),
                        ("looked_at_120", models.BigIntegerField(default=0)),
                        ("retained_120", models.BigIntegerField(default=0)),
                        ("looked_at_300", models.BigIntegerField(default=0)),
                        ("retained_300", models.BigIntegerField(default=0)),
                        ("looked_at_600", models.BigIntegerField(default=0)),
                        ("retained_600", models.BigIntegerField(default=0)),
                        ("looked_at_1800", models.BigIntegerField(default=0)),
                        ("retained_1800", models.BigIntegerField(default=0)),
                        ("typed_chars", models.BigIntegerField(default=0)),
                    ],
                    options={
                        "db_table": "tenants_usage_hour",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="usage_hour_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="UsageDay",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "starts_at",
                                "user_id",
                                "editor",
                                "language",
                                "model",
                                "variant",
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
                        ("starts_at", models.DateTimeField()),
                        ("user_id", models.UUIDField()),
                        ("editor", models.TextField()),
                        ("language", models.TextField()),
                        ("model", models.TextField()),
                        ("variant", models.TextField()),
                        ("requests", models.BigIntegerField(default=0)),
                        ("completed", models.BigIntegerField(default=0)),
                        ("cancelled", models.BigIntegerField(default=0)),
                        ("shed", models.BigIntegerField(default=0)),
                        ("filtered", models.BigIntegerField(default=0)),
                        ("errors", models.BigIntegerField(default=0)),
                        ("suggestions", models.BigIntegerField(default=0)),
                        ("suggested_chars", models.BigIntegerField(default=0)),
                        ("suggested_lines", models.BigIntegerField(default=0)),
                        ("parsed", models.BigIntegerField(default=0)),
                        ("parsed_valid", models.BigIntegerField(default=0)),
                        ("prompt_tokens", models.BigIntegerField(default=0)),
                        ("prompt_tokens_with_cache_info", models.BigIntegerField(default=0)),
                        ("cached_tokens", models.BigIntegerField(default=0)),
                        ("generated_tokens", models.BigIntegerField(default=0)),
                        ("shown", models.BigIntegerField(default=0)),
                        ("seen", models.BigIntegerField(default=0)),
                        ("accepted", models.BigIntegerField(default=0)),
                        ("partly_accepted", models.BigIntegerField(default=0)),
                        ("rejected", models.BigIntegerField(default=0)),
                        ("shown_chars", models.BigIntegerField(default=0)),
                        ("seen_chars", models.BigIntegerField(default=0)),
                        ("accepted_chars", models.BigIntegerField(default=0)),
                        ("shown_lines", models.BigIntegerField(default=0)),
                        ("accepted_lines", models.BigIntegerField(default=0)),
                        ("accepted_tokens", models.BigIntegerField(default=0)),
                        ("looked_at_15", models.BigIntegerField(default=0)),
                        ("retained_15", models.BigIntegerField(default=0)),
                        ("looked_at_30", models.BigIntegerField(default=0)),
                        ("retained_30", models.BigIntegerField(default=0)),
                        ("looked_at_120", models.BigIntegerField(default=0)),
                        ("retained_120", models.BigIntegerField(default=0)),
                        ("looked_at_300", models.BigIntegerField(default=0)),
                        ("retained_300", models.BigIntegerField(default=0)),
                        ("looked_at_600", models.BigIntegerField(default=0)),
                        ("retained_600", models.BigIntegerField(default=0)),
                        ("looked_at_1800", models.BigIntegerField(default=0)),
                        ("retained_1800", models.BigIntegerField(default=0)),
                        ("typed_chars", models.BigIntegerField(default=0)),
                    ],
                    options={
                        "db_table": "tenants_usage_day",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="usage_day_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LatencyHour",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "starts_at",
                                "mode",
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
                        ("starts_at", models.DateTimeField()),
                        ("mode", models.TextField()),
                        (
                            "sizes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.IntegerField(), size=None
                            ),
                        ),
                        (
                            "counts",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.BigIntegerField(), size=None
                            ),
                        ),
                        ("at_replica", models.BigIntegerField()),
                        ("sent", models.BigIntegerField()),
                    ],
                    options={
                        "db_table": "tenants_latency_hour",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="speed_hour_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="LatencyDay",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "starts_at",
                                "mode",
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
                        ("starts_at", models.DateTimeField()),
                        ("mode", models.TextField()),
                        (
                            "sizes",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.IntegerField(), size=None
                            ),
                        ),
                        (
                            "counts",
                            django.contrib.postgres.fields.ArrayField(
                                base_field=models.BigIntegerField(), size=None
                            ),
                        ),
                        ("at_replica", models.BigIntegerField()),
                        ("sent", models.BigIntegerField()),
                    ],
                    options={
                        "db_table": "tenants_latency_day",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="speed_day_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DirtyHour",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "hour",
                                "mark_id",
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
                        ("hour", models.DateTimeField()),
                        ("mark_id", models.UUIDField(default=uuid.uuid4)),
                    ],
                    options={
                        "db_table": "tenants_dirty_hour",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="rollup_mark_tenant",
                                privileges=("SELECT", "INSERT", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="RollupState",
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
                        ("complete_until", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_rollup_state",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="rollup_state_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ScimToken",
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
                        ("name", models.CharField(max_length=120)),
                        ("digest", models.BinaryField()),
                        ("created_at", models.DateTimeField()),
                        ("revoked_at", models.DateTimeField(null=True)),
                        ("last_used_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "db_table": "tenants_scim_token",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant", "digest"), name="scim_token_digest"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="scim_token_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ScimUser",
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
                        ("user_name", models.CharField(max_length=254)),
                        ("external_id", models.CharField(max_length=254)),
                        ("email", models.CharField(max_length=254)),
                        ("active", models.BooleanField()),
                        ("document", models.JSONField()),
                        ("created_at", models.DateTimeField()),
                        ("changed_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_scim_user",
                        "indexes": [
                            models.Index(
                                fields=["tenant", "external_id"], name="scim_user_external"
                            ),
                            models.Index(fields=["tenant", "email"], name="scim_user_email"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                models.F("tenant"),
                                django.db.models.functions.text.Lower("user_name"),
                                name="scim_user_name",
                            ),
                            models.UniqueConstraint(
                                fields=("tenant", "user"), name="scim_user_account"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="scim_user_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ScimGroup",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "team_id",
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
                        ("team_id", models.UUIDField()),
                        ("external_id", models.CharField(max_length=254)),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("owner", "OWNER"),
                                    ("administrator", "ADMINISTRATOR"),
                                    ("billing", "BILLING"),
                                    ("auditor", "AUDITOR"),
                                    ("developer", "DEVELOPER"),
                                ],
                                max_length=16,
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                        ("changed_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_scim_group",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="scim_group_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ScimGroupMember",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "team_id",
                                "scim_user_id",
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
                        ("team_id", models.UUIDField()),
                        ("scim_user_id", models.UUIDField()),
                    ],
                    options={
                        "db_table": "tenants_scim_group_member",
                        "indexes": [
                            models.Index(
                                fields=["tenant", "scim_user_id"], name="scim_group_member_user"
                            )
                        ],
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="scim_group_member_tenant",
                                privileges=("SELECT", "INSERT", "DELETE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Domain",
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
                        ("name", models.CharField(max_length=253)),
                        ("challenge", models.CharField(max_length=80)),
                        ("created_at", models.DateTimeField()),
                        ("verified_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(fields=("tenant", "name"), name="domain_name"),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="domain_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="VerifiedDomain",
                    fields=[
                        (
                            "name",
                            models.CharField(max_length=253, primary_key=True, serialize=False),
                        ),
                        (
                            "holder",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.tenant",
                            ),
                        ),
                    ],
                    options={
                        "db_table": "tenants_verified_domain",
                        "constraints": [
                            caret.foundation.postgres.row_security.Grants(
                                name="captured_domain_grants",
                                privileges=("SELECT", "INSERT", "DELETE"),
                                reason="finds the tenant of an e-mail address at sign-in, before it is known",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="IdentityProvider",
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
                        (
                            "protocol",
                            models.CharField(
                                choices=[("oidc", "Oidc"), ("saml", "Saml")],
                                db_default="oidc",
                                max_length=4,
                            ),
                        ),
                        ("issuer", models.CharField(max_length=500)),
                        ("client_id", models.CharField(max_length=200)),
                        ("sealed_secret", models.BinaryField()),
                        ("sso_url", models.CharField(db_default="", max_length=500)),
                        ("certificates", models.TextField(db_default="")),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "db_table": "tenants_identity_provider",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("tenant",), name="identity_provider_tenant"
                            ),
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="identity_provider_security",
                                privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                                user_column=None,
                            ),
                        ],
                    },
                ),
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
                        (
                            "tenant",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.tenant",
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
                    ],
                    options={
                        "db_table": "tenants_stripe_event",
                        "indexes": [
                            models.Index(
                                condition=models.Q(("next_at__isnull", False)),
                                fields=["tenant", "next_at"],
                                name="stripe_event_due",
                            ),
                            models.Index(
                                fields=["tenant", "occurred_at"], name="stripe_event_month"
                            ),
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
                migrations.CreateModel(
                    name="Subscription",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "starts_on",
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
                        ("starts_on", models.DateField()),
                        (
                            "plan",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="tenants.plan",
                            ),
                        ),
                        ("created_at", models.DateTimeField()),
                    ],
                    options={
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="subscription_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="BillingState",
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
                        ("currency", models.CharField(max_length=3)),
                        ("rated_batch", models.BigIntegerField(default=0)),
                        ("seats_booked_on", models.DateField(null=True)),
                        ("invoiced_month", models.DateField(null=True)),
                        ("last_number", models.PositiveIntegerField(default=0)),
                    ],
                    options={
                        "db_table": "tenants_billing_state",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="billing_state_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="UsageBatchCounter",
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
                        ("last_batch", models.BigIntegerField(default=0)),
                    ],
                    options={
                        "db_table": "tenants_usage_batch_counter",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="usage_feed_tenant",
                                privileges=("SELECT", "INSERT", "UPDATE"),
                                user_column=None,
                            )
                        ],
                    },
                ),
                CreatePartitionedModel(
                    name="UsageRecord",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "occurred_at",
                                "request_id",
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
                        ("occurred_at", models.DateTimeField()),
                        ("request_id", models.UUIDField()),
                        ("user_id", models.UUIDField(null=True)),
                        ("key_id", models.UUIDField()),
                        ("protocol", models.TextField()),
                        ("mode", models.TextField()),
                        ("language", models.TextField()),
                        ("tier", models.TextField()),
                        ("pool", models.TextField()),
                        ("replica", models.TextField()),
                        ("finish", models.TextField()),
                        ("error_code", models.TextField()),
                        ("prompt_tokens", models.IntegerField()),
                        ("cached_tokens", models.IntegerField(null=True)),
                        ("generated_tokens", models.IntegerField()),
                        ("assemble_ms", models.FloatField(null=True)),
                        ("first_token_ms", models.FloatField(null=True)),
                        ("engine_ms", models.FloatField(null=True)),
                        ("total_ms", models.FloatField()),
                        ("trigger", models.TextField(null=True)),
                        ("variant", models.TextField(null=True)),
                        ("filter_reason", models.TextField(null=True)),
                        ("num_files", models.IntegerField(null=True)),
                        ("num_snippets", models.IntegerField(null=True)),
                        ("authenticated_ms", models.FloatField(null=True)),
                        ("admitted_ms", models.FloatField(null=True)),
                        ("routed_ms", models.FloatField(null=True)),
                        ("num_in_flight_at_replica", models.IntegerField(null=True)),
                        ("batch", models.BigIntegerField(null=True)),
                        ("editor", models.TextField(null=True)),
                        ("model", models.TextField(null=True)),
                        ("num_chars", models.IntegerField(null=True)),
                        ("num_lines", models.IntegerField(null=True)),
                        ("is_parsed", models.BooleanField(null=True)),
                    ],
                    options={
                        "db_table": "tenants_usage_record",
                        "indexes": [
                            models.Index(fields=["tenant", "batch"], name="usage_record_batch"),
                            models.Index(
                                condition=models.Q(("finish__in", ["error", "filtered"])),
                                fields=["tenant", "occurred_at"],
                                name="usage_record_denied",
                            ),
                        ],
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="usage_record_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            ),
                            caret.foundation.postgres.row_security.DeletableAfter(
                                column="occurred_at", days=62, name="usage_record_age"
                            ),
                            caret.foundation.postgres.row_security.ColumnUpdatable(
                                column="user_id",
                                condition="NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = tenants_usage_record.user_id)",
                                name="usage_record_renamed",
                            ),
                        ],
                    },
                ),
                CreatePartitionedModel(
                    name="Outcome",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "occurred_at",
                                "outcome_id",
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
                        ("occurred_at", models.DateTimeField()),
                        ("outcome_id", models.UUIDField()),
                        ("request_id", models.UUIDField()),
                        ("user_id", models.UUIDField(null=True)),
                        ("event", models.TextField()),
                        ("chars", models.IntegerField()),
                        ("after_ms", models.IntegerField()),
                        ("lines", models.IntegerField(null=True)),
                        ("span_s", models.IntegerField(null=True)),
                        ("edited_ratio", models.FloatField(null=True)),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["tenant", "request_id"], name="outcome_request")
                        ],
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="outcome_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            ),
                            caret.foundation.postgres.row_security.DeletableAfter(
                                column="occurred_at", days=62, name="outcome_age"
                            ),
                            caret.foundation.postgres.row_security.ColumnUpdatable(
                                column="user_id",
                                condition="NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = tenants_outcome.user_id)",
                                name="outcome_renamed",
                            ),
                        ],
                    },
                ),
                CreatePartitionedModel(
                    name="TypingReport",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "tenant_id",
                                "occurred_at",
                                "typed_id",
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
                        ("occurred_at", models.DateTimeField()),
                        ("typed_id", models.UUIDField()),
                        ("user_id", models.UUIDField(null=True)),
                        ("language", models.TextField()),
                        ("editor", models.TextField()),
                        ("chars", models.IntegerField()),
                    ],
                    options={
                        "db_table": "tenants_typing_report",
                        "constraints": [
                            caret.foundation.postgres.row_security.RowSecurity(
                                name="typed_tenant",
                                privileges=("SELECT", "INSERT"),
                                user_column=None,
                            ),
                            caret.foundation.postgres.row_security.DeletableAfter(
                                column="occurred_at", days=62, name="typed_age"
                            ),
                            caret.foundation.postgres.row_security.ColumnUpdatable(
                                column="user_id",
                                condition="NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = tenants_typing_report.user_id)",
                                name="typed_renamed",
                            ),
                        ],
                    },
                ),
            ]
        ),
    ]
