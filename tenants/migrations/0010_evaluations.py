"""Reports of `manage.py evaluate`."""

from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security


class Migration(migrations.Migration):
    dependencies = [("tenants", "0009_model_prices")]

    operations = [
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=caret.foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("title", models.CharField(max_length=120)),
                ("report", models.JSONField()),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "tenants_evaluation",
                "indexes": [
                    models.Index(fields=["-created_at", "-id"], name="evaluation_newest"),
                ],
                "constraints": [
                    caret.foundation.postgres.row_security.Grants(
                        name="evaluation_grants",
                        privileges=("SELECT", "INSERT"),
                        reason="scores of the installation's pools on an operator's code; "
                        "no tenant's data",
                    ),
                ],
            },
        ),
    ]
