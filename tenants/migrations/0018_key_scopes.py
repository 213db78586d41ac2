"""Keys have scopes, networks and a text before the present one; by a lookup id they are found before
their tenant is known."""

import django.contrib.postgres.fields
from django.db import migrations, models

import caret.foundation.postgres.row_security
import tenants.models.api_key


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0017_budgets"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="apikey",
            name="api_key_tenant",
        ),
        migrations.AddField(
            model_name="apikey",
            name="issued_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="leak_notified_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="leaked_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="networks",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=64), default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="apikey",
            name="previous_digest",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="previous_ends_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="previous_pepper_version",
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="apikey",
            name="scopes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40),
                default=tenants.models.api_key.inference,
                size=None,
            ),
        ),
        migrations.AddIndex(
            model_name="apikey",
            index=models.Index(fields=["lookup_id"], name="api_key_presented"),
        ),
        migrations.AddConstraint(
            model_name="apikey",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                lookup_column="lookup_id",
                name="api_key_tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
                user_column=None,
            ),
        ),
    ]
