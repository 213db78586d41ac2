"""The end of a trial, and the closing of a tenant."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0005_device_keys_and_invited_team"),
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
            name="trial_ends_on",
            field=models.DateField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="trial_reminder_days",
            field=models.PositiveSmallIntegerField(null=True),
        ),
    ]
