"""Tenants: how many people a group of a report must have to be shown."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0015_consent"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="min_group_users",
            field=models.PositiveSmallIntegerField(default=5),
        ),
    ]
