"""The finish reason of a completion has its whole name.

Postgres renames the column in the condition of its index, too. Only Django's state needs the new
condition.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_keys_triggers_and_grants")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("usagerecord", "usage_record_denied")]
        ),
        migrations.RenameField("usagerecord", "finish", "finish_reason"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex(
                    "usagerecord",
                    models.Index(
                        fields=["tenant", "occurred_at"],
                        name="usage_record_denied",
                        condition=models.Q(finish_reason__in=["error", "filtered"]),
                    ),
                )
            ]
        ),
    ]
