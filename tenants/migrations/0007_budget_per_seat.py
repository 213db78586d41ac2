"""Budgets whose limit is of one seat. The default keeps existing budgets as they are."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_tenant_trial_and_closing")]

    operations = [
        migrations.AddField(
            model_name="budget",
            name="is_per_seat",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
