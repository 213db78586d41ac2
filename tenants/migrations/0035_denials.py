"""Requests that failed or were withheld are found without reading the others."""

from django.db import migrations, models

from caret.foundation.postgres.partitioned_index import AddPartitionedIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("tenants", "0034_speeds"),
    ]

    operations = [
        AddPartitionedIndex(
            model_name="usagerecord",
            index=models.Index(
                fields=["tenant", "occurred_at"],
                name="usage_record_denied",
                condition=models.Q(finish__in=["error", "filtered"]),
            ),
        ),
    ]
