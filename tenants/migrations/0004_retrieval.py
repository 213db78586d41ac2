"""The index of retrieval: one table, its row policy, and the extension for its vectors.

The extension is no trusted one: where the owner of the tables may not install it, whoever
administers the database runs `CREATE EXTENSION vector` before the migration.
"""

import django.db.models.deletion
import pgvector.django.vector
from django.db import migrations, models
from pgvector.django import VectorExtension

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_usage_details"),
    ]

    operations = [
        VectorExtension(),
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
                "db_table": "tenants_retrieval_chunk",
                "indexes": [
                    models.Index(fields=["tenant", "scope_digest"], name="retrieval_chunk_scope")
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
    ]
