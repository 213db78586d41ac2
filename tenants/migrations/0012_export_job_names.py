"""The state of a running export job is `running`; indexes and constraints say "job", not "build".

The table's owner has no row policy: without NO FORCE the UPDATE finds no rows.
"""

from typing import Any, Final

from django.db import migrations, models

from caret.foundation.postgres.rename_columns import RenameColumns
from caret.foundation.postgres.row_security import RowSecurity

# As RunSQL takes them: texts, or pairs of a text and its parameters.
_Statements = list[str | tuple[str, dict[str, Any] | list[Any] | tuple[Any, ...] | None]]
_OBJECTS: Final = "export_object_order"


def _rename_state(old: str, new: str) -> _Statements:
    return [
        "ALTER TABLE tenants_export_job NO FORCE ROW LEVEL SECURITY",
        ("UPDATE tenants_export_job SET state = %s WHERE state = %s", [new, old]),
        "ALTER TABLE tenants_export_job FORCE ROW LEVEL SECURITY",
    ]


def _rename_parts(*, is_backwards: bool) -> _Statements:
    statements: _Statements = []
    for statement, old, new in (
        ("ALTER POLICY {} ON tenants_export_job RENAME TO {}", "build_tenant", "job_tenant"),
        (
            "ALTER TABLE tenants_export_job RENAME CONSTRAINT tenants_{} TO tenants_{}",
            "build_requested_by",
            "job_requested_by",
        ),
        (
            "ALTER TABLE tenants_export_object RENAME CONSTRAINT tenants_{} TO tenants_{}",
            "object_build",
            "object_job",
        ),
    ):
        names = (f"export_{old}", f"export_{new}")
        statements.append(statement.format(*(reversed(names) if is_backwards else names)))
    return statements


class Migration(migrations.Migration):
    dependencies = [("tenants", "0011_plain_column_names")]

    operations = [
        migrations.RunSQL(
            _rename_state("building", "running"), _rename_state("running", "building")
        ),
        migrations.RunSQL(
            _rename_parts(is_backwards=False),
            _rename_parts(is_backwards=True),
            state_operations=[
                migrations.RemoveConstraint("exportjob", "export_build_tenant"),
                migrations.AddConstraint(
                    "exportjob",
                    RowSecurity(
                        name="export_job_tenant", privileges=("SELECT", "INSERT", "UPDATE")
                    ),
                ),
                migrations.RemoveIndex("exportobject", _OBJECTS),
            ],
        ),
        migrations.RenameIndex(
            "exportjob", old_name="export_build_created", new_name="export_job_created"
        ),
        migrations.RenameIndex(
            "exportjob", old_name="export_build_unswept", new_name="export_job_with_objects"
        ),
        RenameColumns({"exportobject": {"build_id": "export_id"}}),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex(
                    "exportobject",
                    models.Index(fields=["tenant", "export_id", "member", "number"], name=_OBJECTS),
                ),
            ]
        ),
    ]
