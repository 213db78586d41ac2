"""People: teams, invitations, and memberships that end; a tenant's region, and closing."""

import uuid

import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0012_outcome_details"),
    ]

    operations = [
        migrations.AddField(
            model_name="membership",
            name="ended_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="region",
            field=models.CharField(default="local", max_length=32),
        ),
        migrations.AlterField(
            model_name="tenant",
            name="status",
            field=models.CharField(
                choices=[
                    ("active", "ACTIVE"),
                    ("suspended", "SUSPENDED"),
                    ("closing", "CLOSING"),
                    ("closed", "CLOSED"),
                ],
                max_length=12,
            ),
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
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("mailed_at", models.DateTimeField(null=True)),
                ("accepted_at", models.DateTimeField(null=True)),
                ("revoked_at", models.DateTimeField(null=True)),
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
                    models.UniqueConstraint(fields=("tenant", "digest"), name="invitation_digest"),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="invitation_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    ),
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("name", models.CharField(max_length=120)),
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
                ("team_id", models.UUIDField()),
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
                "db_table": "tenants_team_membership",
                "indexes": [models.Index(fields=["tenant", "user"], name="team_membership_user")],
                "constraints": [
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="team_membership_tenant",
                        privileges=("SELECT", "INSERT", "DELETE"),
                        user_column=None,
                    )
                ],
            },
        ),
        migrations.RunSQL(
            [
                "ALTER TABLE tenants_team_membership ADD CONSTRAINT team_membership_team"
                " FOREIGN KEY (tenant_id, team_id) REFERENCES tenants_team (tenant_id, id)"
                " ON DELETE CASCADE",
                "ALTER TABLE tenants_team_membership ADD CONSTRAINT team_membership_member"
                " FOREIGN KEY (tenant_id, user_id)"
                " REFERENCES tenants_membership (tenant_id, user_id)",
            ],
            [
                "ALTER TABLE tenants_team_membership DROP CONSTRAINT team_membership_team",
                "ALTER TABLE tenants_team_membership DROP CONSTRAINT team_membership_member",
            ],
        ),
    ]
