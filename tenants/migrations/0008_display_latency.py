"""The time from sending a request to text on the screen, as editors report it."""

import django.contrib.postgres.fields
from django.db import migrations, models

_SIZES = django.contrib.postgres.fields.ArrayField(
    base_field=models.IntegerField(), null=True, size=None
)
_COUNTS = django.contrib.postgres.fields.ArrayField(
    base_field=models.BigIntegerField(), null=True, size=None
)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_budget_per_seat")]

    operations = [
        migrations.AddField("outcome", "display_ms", models.IntegerField(null=True)),
        migrations.AddField("latencyhour", "display_sizes", _SIZES),
        migrations.AddField("latencyhour", "display_counts", _COUNTS),
        migrations.AddField("latencyday", "display_sizes", _SIZES.clone()),
        migrations.AddField("latencyday", "display_counts", _COUNTS.clone()),
    ]
