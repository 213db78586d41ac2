"""Audit entries become a chain. First of three: columns that may be empty, and the chain's heads."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_retrieval_storage"),
    ]

    operations = [
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
                ("sequence", models.PositiveBigIntegerField()),
                ("hash", models.BinaryField()),
                ("signed_at", models.DateTimeField()),
                ("key_id", models.CharField(max_length=16)),
                ("signature", models.BinaryField()),
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
                        name="signed_audit_head_tenant",
                        privileges=("SELECT", "INSERT"),
                        user_column=None,
                    )
                ],
            },
        ),
        *(
            migrations.AddField(model_name="auditentry", name=name, field=field)
            for name, field in (
                ("sequence", models.PositiveBigIntegerField(null=True)),
                ("previous_hash", models.BinaryField(null=True)),
                ("hash", models.BinaryField(null=True)),
                ("actor_kind", models.CharField(max_length=12, null=True)),
                ("actor_key", models.CharField(max_length=40, null=True)),
            )
        ),
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.UniqueConstraint(
                fields=("tenant", "sequence"), name="audit_entry_sequence"
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["tenant", "at", "id"], name="audit_entry_at"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["tenant", "target", "at"], name="audit_entry_target"),
        ),
    ]
