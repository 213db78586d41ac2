"""Migrations do not block requests that use the tables.

One migration expands the schema, another fills the new columns, and a migration of a later release
contracts the schema (platform/docs/upgrading.md). A mistake would show only in production, on the
first large table. SQL in RunSQL operations is not checked.
"""

from collections.abc import Iterator
from typing import Final

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED, CheckConstraint, Field, Q, TextField, UniqueConstraint

from caret.foundation.postgres.partitioned_index import AddPartitionedIndex
from caret.foundation.postgres.rename_columns import RenameColumns

# Migrations up to this number are not checked: they are older than the first installation.
LAST_UNCHECKED = 2
_FROM_0_1_0: Final = "Only the upgrade from 0.1.0 runs it, and all programs are stopped then."
_LONGER_VARCHAR: Final = "Postgres makes a varchar longer without reading the table."
# Migrations that are safe although the check reports them, with the reason.
EXCEPTIONS: dict[str, str] = {
    "0003_usage_finish_reason": _FROM_0_1_0,
    "0011_plain_column_names": _FROM_0_1_0,
    "0012_export_job_names": _FROM_0_1_0,
    "0013_legal_hold_ids": _FROM_0_1_0,
    "0014_export_object_pack_index": _FROM_0_1_0,
    "0009_model_prices": _LONGER_VARCHAR,
    "0015_names_of_invoices": _LONGER_VARCHAR,
}

_CHANGES_OF_NAME_OR_TYPE = (
    migrations.RenameField,
    RenameColumns,
    migrations.RenameModel,
    migrations.AlterModelTable,
    migrations.AlterField,
)
_REMOVALS = (migrations.RemoveField, migrations.DeleteModel)
_FILLS = (migrations.RunPython,)
_WITHOUT_LOCK = (AddIndexConcurrently, AddPartitionedIndex, RemoveIndexConcurrently)


def test_new_migrations_do_not_block_running_processes() -> None:
    faults_by_migration = {
        name: faults
        for name, operations in _load_migrations()
        if int(name[:4]) > LAST_UNCHECKED and name not in EXCEPTIONS
        if (faults := find_faults(operations))
    }

    assert faults_by_migration == {}


def test_every_exception_is_needed() -> None:
    reported = {name for name, operations in _load_migrations() if find_faults(operations)}

    assert set(EXCEPTIONS) <= reported


def _text_field(**options: object) -> "Field[object, object]":
    return TextField(**options)  # type: ignore[arg-type]  # any options of the field


def _check_constraint() -> CheckConstraint:
    return CheckConstraint(condition=Q(name="x"), name="x")


@pytest.mark.parametrize(
    ("operations", "fault"),
    [
        ([migrations.AddField("t", "name", _text_field())], "db_default"),
        ([migrations.AddField("t", "name", _text_field(default=""))], "db_default"),
        ([migrations.AlterField("t", "name", _text_field())], "AlterField"),
        ([migrations.RenameField("t", "name", "other")], "RenameField"),
        ([RenameColumns({"t": {"name": "other"}})], "RenameColumns"),
        ([migrations.AddConstraint("t", _check_constraint())], "AddConstraint"),
        (
            [
                migrations.AddField("t", "name", _text_field(null=True)),
                migrations.RemoveField("t", "old"),
            ],
            "a later one",
        ),
        (
            [
                migrations.AddField("t", "name", _text_field(null=True)),
                migrations.RunPython(migrations.RunPython.noop),
            ],
            "migration of its own",
        ),
    ],
)
def test_an_unsafe_migration_is_reported(operations: list[Operation], fault: str) -> None:
    faults = find_faults(operations)

    assert len(faults) == 1
    assert fault in faults[0]


@pytest.mark.parametrize(
    "operations",
    [
        [migrations.AddField("t", "name", _text_field(null=True))],
        [migrations.AddField("t", "name", _text_field(db_default=""))],
        [migrations.CreateModel("T", []), migrations.AddConstraint("T", _check_constraint())],
        [migrations.RemoveField("t", "old")],
        [migrations.RunPython(migrations.RunPython.noop)],
    ],
)
def test_a_safe_migration_is_not_reported(operations: list[Operation]) -> None:
    assert find_faults(operations) == []


def find_faults(operations: list[Operation]) -> list[str]:
    """Return the faults as sentences.

    Tables that the migration creates are not in use yet, so changes of them cannot be faults.
    """
    created = {
        operation.name.lower()
        for operation in operations
        if isinstance(operation, migrations.CreateModel)
    }
    on_used_tables = [
        operation for operation in operations if _table_name(operation) not in created
    ]
    faults = [
        fault for operation in on_used_tables if (fault := _find_fault(operation)) is not None
    ]
    has_additions = any(
        not isinstance(operation, (*_REMOVALS, *_FILLS)) for operation in operations
    )
    if has_additions and any(isinstance(operation, _REMOVALS) for operation in on_used_tables):
        faults.append("Add in one release and remove in a later one: older processes still run.")
    if has_additions and any(isinstance(operation, _FILLS) for operation in operations):
        faults.append("Fill in a migration of its own: this one holds locks on the schema.")
    return faults


def _table_name(operation: Operation) -> str:
    # Operations on fields, indexes and constraints have the model in `model_name`. Operations on a
    # model have it in `name`.
    name = getattr(operation, "model_name", None) or getattr(operation, "name", "")
    return str(name).lower()


def _find_fault(operation: Operation) -> str | None:
    kind = type(operation).__name__
    if isinstance(operation, _WITHOUT_LOCK):
        return None
    if isinstance(operation, _CHANGES_OF_NAME_OR_TYPE):
        return (
            f"{kind} of a used table: older processes use the old name or type. Add, fill, remove."
        )
    if isinstance(operation, migrations.AddIndex):
        return (
            f"{kind} locks the table. Use AddIndexConcurrently with atomic = False, or"
            " AddPartitionedIndex for a partitioned table."
        )
    if isinstance(operation, migrations.AddConstraint) and isinstance(
        operation.constraint, (CheckConstraint, UniqueConstraint)
    ):
        return f"{kind} reads the whole table under a lock: add it NOT VALID, then validate it."
    if isinstance(operation, migrations.AddField) and _is_required(operation.field):
        return (
            "Older processes insert rows without the new field, which then fails: add null or"
            " db_default. Django drops `default` from the database after the migration."
        )
    return None


def _is_required(field: "Field[object, object]") -> bool:
    has_database_default = field.db_default is not NOT_PROVIDED
    # A many-to-many field has a table of its own, and no column in this one.
    return not (field.null or has_database_default or field.many_to_many)


def _load_migrations() -> Iterator[tuple[str, list[Operation]]]:
    loader = MigrationLoader(None)
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app == "tenants":
            yield name, list(migration.operations)
