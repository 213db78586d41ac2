"""The creator of a key and the user who saw its current text; both unknown for older keys."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def add_member(column: str) -> list[migrations.operations.base.Operation]:
    """A composite key, as Postgres checks foreign keys past row security: without the tenant in it,
    a row could point at another tenant's."""
    constraint = f"tenants_apikey_{column}_member"
    return [
        migrations.AddField(
            model_name="apikey",
            name=column.removesuffix("_id"),
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(
            f"ALTER TABLE tenants_apikey ADD CONSTRAINT {constraint}"
            f" FOREIGN KEY (tenant_id, {column}) REFERENCES tenants_membership (tenant_id, user_id)",
            f"ALTER TABLE tenants_apikey DROP CONSTRAINT {constraint}",
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0026_retention"),
    ]

    operations = [*add_member("created_by_id"), *add_member("issued_by_id")]
