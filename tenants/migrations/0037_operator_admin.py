"""Rename the operator role `manager` to `admin` in stored accounts."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0036_default_days"),
    ]

    operations = [
        migrations.RunSQL(
            sql="UPDATE tenants_operator SET role = 'admin' WHERE role = 'manager'",
            reverse_sql="UPDATE tenants_operator SET role = 'manager' WHERE role = 'admin'",
        ),
    ]
