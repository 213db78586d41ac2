"""Erasure of people and tenants: what was demanded, and which rows it may change."""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.ids
from caret.foundation.postgres.row_security import ColumnUpdatable, DeletableWhen, RowSecurity


def shredded_only(model: str, name: str, table: str) -> migrations.AddConstraint:
    demanded = f"e.tenant_id = {table}.tenant_id AND e.user_id IS NULL"
    return migrations.AddConstraint(
        model_name=model,
        constraint=DeletableWhen(
            name=name, condition=f"EXISTS (SELECT FROM tenants_erasure e WHERE {demanded})"
        ),
    )


def renamable(model: str, name: str, table: str) -> migrations.AddConstraint:
    nobodys = f"NOT EXISTS (SELECT FROM tenants_user u WHERE u.id = {table}.user_id)"
    return migrations.AddConstraint(
        model_name=model,
        constraint=ColumnUpdatable(name=name, column="user_id", condition=nobodys),
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0028_operators"),
    ]

    operations = [
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
                ("id", models.UUIDField(default=caret.foundation.ids.uuid7, editable=False)),
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
                    models.Index(fields=["tenant", "requested_at", "id"], name="erasure_requested")
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
                    RowSecurity(
                        name="erasure_tenant",
                        privileges=("SELECT", "INSERT", "UPDATE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="membership",
            name="erased_at",
            field=models.DateTimeField(null=True),
        ),
        renamable("usagerecord", "usage_record_renamed", "tenants_usage_record"),
        renamable("outcome", "outcome_renamed", "tenants_outcome"),
        renamable("typingreport", "typed_renamed", "tenants_typing_report"),
        shredded_only("policyversion", "policy_version_shredded", "tenants_policyversion"),
        shredded_only(
            "policyoverrideversion",
            "policy_layer_version_shredded",
            "tenants_policy_override_version",
        ),
    ]
