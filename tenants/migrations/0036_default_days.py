"""A version of a retention rule may say that the default holds again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0035_denials"),
    ]

    operations = [
        migrations.AddField(
            model_name="retentionrule",
            name="is_default",
            field=models.BooleanField(db_default=False),
        ),
    ]
