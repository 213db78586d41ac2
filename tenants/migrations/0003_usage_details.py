"""Usage: variant, trigger, why the filter cut, and the time of each stage. Nullable: expand only."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0002_usage"),
    ]

    operations = [
        migrations.AddField(
            model_name="usagerecord",
            name="admitted_ms",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="authenticated_ms",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="filter_reason",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="num_in_flight_at_replica",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="num_files",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="num_snippets",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="routed_ms",
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="trigger",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="variant",
            field=models.TextField(null=True),
        ),
    ]
