"""Migrations do not block requests that use the tables.

A migration expands, another one fills, and a migration of a later release contracts
(platform/docs/upgrading.md). A mistake would show only in production, on the first large table.
"""

from collections.abc import Iterator

import pytest
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.models import NOT_PROVIDED, CheckConstraint, Field, UniqueConstraint

from caret.foundation.postgres.partitioned_index import AddPartitionedIndex

# Migrations up to this number are older than the first installation.
LAST_FREE = 2
# Why the migration is safe although the check reports it: migration -> sentence.
EXCUSED: dict[str, str] = {
    "0003_usage_finish_reason": "No installation of an earlier release is upgraded while it runs.",
}

_RENAMES = (
    migrations.RenameField,
    migrations.RenameModel,
    migrations.AlterModelTable,
    migrations.AlterField,
)
_REMOVALS = (migrations.RemoveField, migrations.DeleteModel)
_FILLS = (migrations.RunPython,)
_KEEPS_TABLE = (AddIndexConcurrently, AddPartitionedIndex, RemoveIndexConcurrently)


def test_new_migrations_do_not_block_running_processes() -> None:
    found = {
        name: faults
        for name, operations in _migrations()
        if int(name[:4]) > LAST_FREE and name not in EXCUSED
        if (faults := find_faults(operations))
    }

    assert found == {}


def test_every_exception_is_needed() -> None:
    wrong = {name for name, operations in _migrations() if find_faults(operations)}

    assert set(EXCUSED) <= wrong


def _text(**more: object) -> "Field[object, object]":
    from django.db.models import TextField

    return TextField(**more)  # type: ignore[arg-type]  # as a migration has them


def _check() -> CheckConstraint:
    from django.db.models import Q

    return CheckConstraint(condition=Q(name="x"), name="x")


@pytest.mark.parametrize(
    ("operations", "fault"),
    [
        ([migrations.AddField("t", "name", _text())], "default"),
        ([migrations.AlterField("t", "name", _text())], "AlterField"),
        ([migrations.RenameField("t", "name", "other")], "RenameField"),
        ([migrations.AddConstraint("t", _check())], "AddConstraint"),
        (
            [
                migrations.AddField("t", "name", _text(null=True)),
                migrations.RemoveField("t", "old"),
            ],
            "another release",
        ),
        (
            [
                migrations.AddField("t", "name", _text(null=True)),
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
        [migrations.AddField("t", "name", _text(null=True))],
        [migrations.AddField("t", "name", _text(default=""))],
        [migrations.CreateModel("T", []), migrations.AddConstraint("T", _check())],
        [migrations.RemoveField("t", "old")],
        [migrations.RunPython(migrations.RunPython.noop)],
    ],
)
def test_a_safe_migration_is_not_reported(operations: list[Operation]) -> None:
    assert find_faults(operations) == []


def find_faults(operations: list[Operation]) -> list[str]:
    """Return the faults as sentences. Tables that the migration creates are not in use yet."""
    created = {each.name.lower() for each in operations if isinstance(each, migrations.CreateModel)}
    on_used = [each for each in operations if _table(each) not in created]
    faults = [fault for each in on_used if (fault := _fault(each)) is not None]
    adds = [each for each in operations if not isinstance(each, (*_REMOVALS, *_FILLS))]
    if adds and any(isinstance(each, _REMOVALS) for each in on_used):
        faults.append(
            "Removing belongs into another release than adding: older processes still run."
        )
    if adds and any(isinstance(each, _FILLS) for each in operations):
        faults.append("Filling belongs into a migration of its own: it holds the schema's locks.")
    return faults


def _table(operation: Operation) -> str:
    name = getattr(operation, "model_name", None) or getattr(operation, "name", "")
    return str(name).lower()


def _fault(operation: Operation) -> str | None:
    kind = type(operation).__name__
    if isinstance(operation, _KEEPS_TABLE):
        return None
    if isinstance(operation, _RENAMES):
        return f"{kind} of a used table: older processes know it as it was. Add, fill, remove."
    if isinstance(operation, migrations.AddIndex):
        return (
            f"{kind} locks the table while it builds: AddIndexConcurrently, atomic = False;"
            " of a partitioned table AddPartitionedIndex."
        )
    if isinstance(operation, migrations.AddConstraint) and isinstance(
        operation.constraint, (CheckConstraint, UniqueConstraint)
    ):
        return f"{kind} reads the whole table under a lock: add it NOT VALID, then validate it."
    if isinstance(operation, migrations.AddField) and _is_required(operation.field):
        return "A field without null or a default is missing in what older processes write."
    return None


def _is_required(field: "Field[object, object]") -> bool:
    has_default = field.default is not NOT_PROVIDED or field.db_default is not NOT_PROVIDED
    return not (field.null or has_default or field.many_to_many)


def _migrations() -> Iterator[tuple[str, list[Operation]]]:
    loader = MigrationLoader(None)
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if app == "tenants":
            yield name, list(migration.operations)
