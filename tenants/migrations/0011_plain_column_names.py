"""Columns are named after what they hold.

Postgres renames the columns in the conditions of indexes and in the primary key, too. Only Django's
state needs the new names there.
"""

from typing import Final

from django.db import migrations, models

from caret.contracts.usage import SPANS_S
from caret.foundation.postgres.rename_columns import RenameColumns

_ROLLUP: Final = {"partly_accepted": "partially_accepted"} | {
    f"looked_at_{span_s}": f"checked_{span_s}" for span_s in SPANS_S
}
_LATENCY: Final = {"at_replica": "in_flight_at_replica"}
_DELIVERY: Final = {"attempts": "num_attempts", "next_at": "next_attempt_at"}


class Migration(migrations.Migration):
    dependencies = [("tenants", "0010_evaluations")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex("alertdelivery", "alert_delivery_due"),
                migrations.RemoveIndex("stripeevent", "stripe_event_due"),
                migrations.RemoveIndex("exportjob", "export_build_unswept"),
            ]
        ),
        RenameColumns(
            {
                "usagehour": _ROLLUP,
                "usageday": _ROLLUP,
                "latencyhour": _LATENCY,
                "latencyday": _LATENCY,
                "usagerecord": {"is_parsed": "is_syntax_checked"},
                "typingreport": {"typed_id": "report_id"},
                "alertdelivery": _DELIVERY,
                "stripeevent": _DELIVERY | {"doubtful_since": "unconfirmed_since"},
                "exportjob": {"began_at": "started_at", "swept_at": "objects_deleted_at"},
                "purgerun": {"settled": "num_older_remaining"},
                "datakey": {"witness": "canary"},
                "consentreceipt": {"is_given": "is_granted"},
                "billingstate": {"last_number": "last_invoice_number"},
                "operator": {"last_step": "last_totp_step"},
            }
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "typingreport",
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "occurred_at",
                        "report_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                migrations.AddIndex(
                    "alertdelivery",
                    models.Index(
                        fields=["tenant", "next_attempt_at"],
                        name="alert_delivery_due",
                        condition=models.Q(next_attempt_at__isnull=False),
                    ),
                ),
                migrations.AddIndex(
                    "stripeevent",
                    models.Index(
                        fields=["tenant", "next_attempt_at"],
                        name="stripe_event_due",
                        condition=models.Q(next_attempt_at__isnull=False),
                    ),
                ),
                migrations.AddIndex(
                    "exportjob",
                    models.Index(
                        fields=["tenant", "state"],
                        name="export_build_unswept",
                        condition=models.Q(objects_deleted_at=None),
                    ),
                ),
            ]
        ),
    ]
