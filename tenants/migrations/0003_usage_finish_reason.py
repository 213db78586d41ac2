"""The finish reason of a completion has its whole name."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_keys_triggers_and_grants")]

    operations = [migrations.RenameField("usagerecord", "finish", "finish_reason")]
