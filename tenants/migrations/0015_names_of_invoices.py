"""Make room for the number and the memo of an invoice of a tenant whose slug has 63 characters."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0014_export_object_pack_index")]

    operations = [
        migrations.AlterField("invoice", "name", models.CharField(max_length=80)),
        migrations.AlterField("ledgertransaction", "memo", models.CharField(max_length=250)),
    ]
