"""The column is named after what it holds: the position of an export in its evidence pack.

Postgres renames the column in the index, too. Only Django's state needs the new name there.
"""

from typing import Final

from django.db import migrations, models

from caret.foundation.postgres.rename_columns import RenameColumns

_INDEX: Final = "export_object_order"


class Migration(migrations.Migration):
    dependencies = [("tenants", "0013_legal_hold_ids")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("exportobject", _INDEX)]
        ),
        RenameColumns({"exportobject": {"member": "pack_index"}}),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex(
                    "exportobject",
                    models.Index(
                        fields=["tenant", "export_id", "pack_index", "number"], name=_INDEX
                    ),
                ),
            ]
        ),
    ]
