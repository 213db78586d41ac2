"""The time from sending a request to text on the screen, as editors report it."""

import django.contrib.postgres.fields
from django.db import migrations, models


def _add_array(model: str, name: str, element: models.Field) -> migrations.AddField:
    field = django.contrib.postgres.fields.ArrayField(base_field=element, null=True, size=None)
    return migrations.AddField(model_name=model, name=name, field=field)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_budget_per_seat")]

    operations = [
        migrations.AddField(
            model_name="outcome", name="display_ms", field=models.IntegerField(null=True)
        ),
        *(
            _add_array(model, name, element)
            for model in ("latencyhour", "latencyday")
            for name, element in (
                ("display_sizes", models.IntegerField()),
                ("display_counts", models.BigIntegerField()),
            )
        ),
    ]
