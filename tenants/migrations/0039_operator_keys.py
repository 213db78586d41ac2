"""Keys of the operators' scripts for the platform API."""

import uuid

import django.contrib.postgres.fields
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0038_longer_slugs"),
    ]

    operations = [
        migrations.CreateModel(
            name="OperatorKey",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
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
    ]
