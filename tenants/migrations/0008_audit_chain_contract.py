"""Third of three: no entry without its place. Needs that no process of the older version writes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0007_audit_chain_fill"),
    ]

    operations = [
        migrations.AlterField(model_name="auditentry", name=name, field=field)
        for name, field in (
            ("sequence", models.PositiveBigIntegerField()),
            ("previous_hash", models.BinaryField()),
            ("hash", models.BinaryField()),
            ("actor_kind", models.CharField(max_length=12)),
            ("actor_key", models.CharField(max_length=40)),
        )
    ]
