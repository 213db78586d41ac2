"""Every table of the first release, each with its row policy and its grants."""

import uuid

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security
from caret.foundation.postgres.row_security import READ_WRITE, grant_sql


def bind_to_membership(table: str, column: str) -> migrations.RunSQL:
    """A composite key, as Postgres checks foreign keys past row security: without the tenant in it,
    a row could point at another tenant's."""
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_member"
        f" FOREIGN KEY (tenant_id, {column}) REFERENCES tenants_membership (tenant_id, user_id)",
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_member",
    )


# Django's own tables. The application reads sessions and which migrations ran; it uses none of
# Django's permissions (see tenants.base.permissions).
DJANGO_GRANTS = {
    "django_session": READ_WRITE,
    "django_migrations": ("SELECT",),
    "django_content_type": (),
    "auth_permission": (),
    "auth_group": (),
    "auth_group_permissions": (),
}


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("sessions", "0001_initial"),
    ]

    operations = [
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
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
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
            name="Tenant",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("slug", models.SlugField(max_length=40, unique=True)),
                ("name", models.CharField(max_length=120)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("active", "ACTIVE"),
                            ("suspended", "SUSPENDED"),
                            ("closed", "CLOSED"),
                        ],
                        max_length=12,
                    ),
                ),
                ("cache_epoch", models.PositiveIntegerField(default=0)),
                ("snapshot_version", models.PositiveBigIntegerField(default=0)),
                ("published_version", models.PositiveBigIntegerField(default=0)),
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
                ("version", models.PositiveIntegerField()),
                ("document", models.JSONField()),
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
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="policy_version_tenant",
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
                (
                    "user",
                    models.ForeignKey(
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
                ("id", models.UUIDField(default=caret.foundation.ids.uuid7, editable=False)),
                ("action", models.CharField(max_length=60)),
                ("target", models.CharField(max_length=200)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
                ("address", models.GenericIPAddressField(null=True)),
                ("request_id", models.CharField(max_length=64)),
                ("reason", models.TextField()),
                ("at", models.DateTimeField()),
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
            ],
            options={
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="audit_entry_tenant", privileges=("SELECT", "INSERT"), user_column=None
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("lookup_id", models.CharField(max_length=8)),
                ("digest", models.BinaryField()),
                ("pepper_version", models.PositiveSmallIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[("live", "DEVELOPER"), ("test", "TEST"), ("svc", "SERVICE")],
                        max_length=8,
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
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
                "indexes": [models.Index(fields=["tenant", "owner"], name="api_key_owner")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "lookup_id"), name="api_key_lookup"),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="api_key_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        bind_to_membership("tenants_apikey", "owner_id"),
        migrations.RunSQL(
            [
                statement
                for table, privileges in DJANGO_GRANTS.items()
                for statement in grant_sql(table, privileges)
            ],
            migrations.RunSQL.noop,
        ),
    ]
