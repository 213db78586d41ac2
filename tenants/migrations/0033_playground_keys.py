"""Keys of the playground, of which a member has one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0032_saml"),
    ]

    operations = [
        migrations.AddField(
            model_name="apikey",
            name="is_playground",
            field=models.BooleanField(db_default=False),
        ),
    ]
