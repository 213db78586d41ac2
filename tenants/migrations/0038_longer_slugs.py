"""A tenant's slug may be as long as a DNS label."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0037_operator_admin"),
    ]

    operations = [
        migrations.AlterField(
            model_name="tenant",
            name="slug",
            field=models.SlugField(max_length=63, unique=True),
        ),
    ]
