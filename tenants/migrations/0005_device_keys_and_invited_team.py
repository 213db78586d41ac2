"""Keys that an editor obtained by the device flow, and the team of an invitation."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0004_pool_assignments_and_model_catalog"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="is_device",
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name="invitation",
            name="team_id",
            field=models.UUIDField(null=True),
        ),
    ]
