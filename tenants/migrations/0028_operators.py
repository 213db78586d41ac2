"""Accounts of the platform's operators, and what they bound a tenant by."""

import uuid

from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0027_key_makers"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="max_concurrent_completions",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="max_requests_per_minute",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.CreateModel(
            name="Operator",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
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
    ]
