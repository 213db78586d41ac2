"""Prices of models, and lines of the ledger that name a model."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_display_latency")]

    operations = [
        migrations.AddField(
            model_name="priceversion",
            name="model_prices",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        migrations.AlterField(
            model_name="ledgerentry",
            name="line",
            field=models.CharField(max_length=160),
        ),
    ]
