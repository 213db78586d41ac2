"""Assigned pools, the end of a trial, and the closing of a tenant."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0003_usage_finish_reason"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="closes_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="final_export_id",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="pools",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=64), db_default=[], size=None
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="trial_ends_on",
            field=models.DateField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="trial_reminder_days",
            field=models.PositiveSmallIntegerField(null=True),
        ),
    ]
