"""The number of records older than a purge that the purge leaves."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0030_exports"),
    ]

    operations = [
        migrations.AddField(
            model_name="purgerun",
            name="settled",
            field=models.BigIntegerField(null=True),
        ),
    ]
