"""First tokens by hour, day and kind of request, as counts by size.

Hours that were counted before have none until they are counted again: `manage.py rebuild_rollups --from`.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from caret.foundation.postgres.row_security import READ_WRITE, RowSecurity


def _speeds(name: str, *, table: str, rule: str) -> migrations.CreateModel:
    key = models.CompositePrimaryKey(
        *("tenant_id", "starts_at", "mode"),
        blank=True,
        editable=False,
        primary_key=True,
        serialize=False,
    )
    array = django.contrib.postgres.fields.ArrayField
    return migrations.CreateModel(
        name=name,
        fields=[
            ("pk", key),
            ("starts_at", models.DateTimeField()),
            ("mode", models.TextField()),
            ("sizes", array(base_field=models.IntegerField(), size=None)),
            ("counts", array(base_field=models.BigIntegerField(), size=None)),
            ("at_replica", models.BigIntegerField()),
            ("sent", models.BigIntegerField()),
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
            "db_table": table,
            "abstract": False,
            "constraints": [RowSecurity(name=rule, privileges=READ_WRITE)],
        },
    )


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0033_playground_keys"),
    ]

    operations = [
        _speeds("LatencyHour", table="tenants_latency_hour", rule="speed_hour_tenant"),
        _speeds("LatencyDay", table="tenants_latency_day", rule="speed_day_tenant"),
    ]
