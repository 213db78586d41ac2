"""Keys of keys: root keys in use, tenants' keys, data keys.

A destroyed key's old row version is gone only once it is vacuumed: autovacuum comes to these
tables after the first change, whatever their size.
"""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security

BIND_DATA_KEY = """
ALTER TABLE keyring_data_key ADD CONSTRAINT keyring_data_key_tenant_key
    FOREIGN KEY (tenant_id, tenant_key_id) REFERENCES keyring_tenant_key (tenant_id, id);
"""
PROMPT_VACUUM = "SET (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0)"


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0010_ledger"),
    ]

    operations = [
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("tenant_key_id", models.UUIDField()),
                ("scope", models.TextField()),
                ("wrapped", models.BinaryField(null=True)),
                ("fingerprint", models.BinaryField()),
                ("witness", models.BinaryField()),
                ("created_at", models.DateTimeField()),
                ("destroyed_at", models.DateTimeField(null=True)),
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
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("root_key_id", models.TextField()),
                ("wrapped", models.BinaryField(null=True)),
                ("fingerprint", models.BinaryField()),
                ("created_at", models.DateTimeField()),
                ("retired_at", models.DateTimeField(null=True)),
                ("destroyed_at", models.DateTimeField(null=True)),
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
                            ("destroyed_at", None), ("retired_at__isnull", False), _connector="OR"
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
        migrations.RunSQL(
            BIND_DATA_KEY,
            "ALTER TABLE keyring_data_key DROP CONSTRAINT keyring_data_key_tenant_key",
        ),
        *(
            migrations.RunSQL(f"ALTER TABLE {table} {PROMPT_VACUUM}", migrations.RunSQL.noop)
            for table in ("keyring_root_key", "keyring_tenant_key", "keyring_data_key")
        ),
    ]
