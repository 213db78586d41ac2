"""Domains of addresses, and what identity providers tell by SCIM."""

import uuid

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import caret.foundation.postgres.row_security

# (table, name, columns, what they name)
COMPOSITE_KEYS = [
    (
        "tenants_scim_group",
        "scim_group_team",
        "(tenant_id, team_id)",
        "tenants_team (tenant_id, id) ON DELETE CASCADE",
    ),
    (
        "tenants_scim_group_member",
        "scim_group_member_group",
        "(tenant_id, team_id)",
        "tenants_scim_group (tenant_id, team_id) ON DELETE CASCADE",
    ),
    (
        "tenants_scim_group_member",
        "scim_group_member_user",
        "(tenant_id, scim_user_id)",
        "tenants_scim_user (tenant_id, id) ON DELETE CASCADE",
    ),
    (
        "tenants_scim_user",
        "scim_user_member",
        "(tenant_id, user_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
]


def bind(table: str, name: str, columns: str, target: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY {columns} REFERENCES {target}",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0018_key_scopes"),
    ]

    operations = [
        migrations.CreateModel(
            name="VerifiedDomain",
            fields=[
                ("name", models.CharField(max_length=253, primary_key=True, serialize=False)),
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("name", models.CharField(max_length=253)),
                ("challenge", models.CharField(max_length=80)),
                ("created_at", models.DateTimeField()),
                ("verified_at", models.DateTimeField(null=True)),
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
                ("team_id", models.UUIDField()),
                ("scim_user_id", models.UUIDField()),
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
                "db_table": "tenants_scim_group_member",
                "indexes": [
                    models.Index(fields=["tenant", "scim_user_id"], name="scim_group_member_user")
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("name", models.CharField(max_length=120)),
                ("digest", models.BinaryField()),
                ("created_at", models.DateTimeField()),
                ("revoked_at", models.DateTimeField(null=True)),
                ("last_used_at", models.DateTimeField(null=True)),
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
                "db_table": "tenants_scim_token",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "digest"), name="scim_token_digest"),
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("user_name", models.CharField(max_length=254)),
                ("external_id", models.CharField(max_length=254)),
                ("email", models.CharField(max_length=254)),
                ("active", models.BooleanField()),
                ("document", models.JSONField()),
                ("created_at", models.DateTimeField()),
                ("changed_at", models.DateTimeField()),
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
                "db_table": "tenants_scim_user",
                "indexes": [
                    models.Index(fields=["tenant", "external_id"], name="scim_user_external"),
                    models.Index(fields=["tenant", "email"], name="scim_user_email"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        models.F("tenant"),
                        django.db.models.functions.text.Lower("user_name"),
                        name="scim_user_name",
                    ),
                    models.UniqueConstraint(fields=("tenant", "user"), name="scim_user_account"),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="scim_user_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        *[bind(*key) for key in COMPOSITE_KEYS],
    ]
