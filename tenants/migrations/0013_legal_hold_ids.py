"""The column is named after what it holds: the IDs of legal holds."""

from django.db import migrations

from caret.foundation.postgres.rename_columns import RenameColumns


class Migration(migrations.Migration):
    dependencies = [("tenants", "0012_export_job_names")]

    operations = [RenameColumns({"erasure": {"held_by": "legal_hold_ids"}})]
