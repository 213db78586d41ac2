"""Monthly partitions of tables by `occurred_at`, created ahead of time by the owner.

A default partition stores rows without a month's partition, so that nothing is lost if this runs
too late. Its rows are moved when their month is created. Partitions are only accessed through their
parent. They inherit neither its policies nor our grants, so each of them is closed separately.
"""

from dataclasses import dataclass
from datetime import date

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import CreateModel
from django.db.migrations.state import ProjectState

from caret.foundation.postgres.row_security import grant_sql


@dataclass(frozen=True, slots=True)
class Month:
    year: int
    number: int  # 1 to 12

    @property
    def start(self) -> date:
        return date(self.year, self.number, 1)

    def plus_months(self, months: int) -> "Month":
        years, zero_based = divmod(self.number - 1 + months, 12)
        return Month(self.year + years, zero_based + 1)


class CreatePartitionedModel(CreateModel):
    """CreateModel for a table partitioned by range of `occurred_at`, with a default partition."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        plain = schema_editor.sql_create_table
        schema_editor.sql_create_table = f"{plain} PARTITION BY RANGE (occurred_at)"
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            schema_editor.sql_create_table = plain
        table = to_state.apps.get_model(app_label, self.name)._meta.db_table
        default = _default_name(table)
        schema_editor.execute(f'CREATE TABLE "{default}" PARTITION OF "{table}" DEFAULT')
        for statement in _close_sql(default):
            schema_editor.execute(statement)


def ensure_month(connection: BaseDatabaseWrapper, table: str, month: Month) -> bool:
    """Create the partition of `month` unless it exists; return whether it was created.

    Needs the owner's connection. Locks the table while rows are moved.
    """
    name = f"{table}_{month.year}_{month.number:02}"
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # Of two concurrent calls, the second waits here and then sees the first one's partition.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [table])
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f'"{name}"'])
        (exists,) = cursor.fetchone()
        if exists:
            return False
        for statement in _month_sql(table, name, month):
            cursor.execute(statement)
    return True


def _month_sql(table: str, name: str, month: Month) -> list[str]:
    low, high = month.start.isoformat(), month.plus_months(1).start.isoformat()
    default = _default_name(table)
    span = f"occurred_at >= '{low} 00:00+00' AND occurred_at < '{high} 00:00+00'"
    return [
        f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE',
        f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
        f'INSERT INTO "{name}" SELECT * FROM "{default}" WHERE {span}',  # noqa: S608  # our own names
        f'DELETE FROM "{default}" WHERE {span}',  # noqa: S608
        f'ALTER TABLE "{table}" ATTACH PARTITION "{name}"'
        f" FOR VALUES FROM ('{low} 00:00+00') TO ('{high} 00:00+00')",
        *_close_sql(name),
    ]


def _close_sql(name: str) -> list[str]:
    # Row-level security without a policy: even a mistaken later grant shows no rows. It is not
    # FORCEd, so that the owner can move rows out of the default partition.
    return [f'ALTER TABLE "{name}" ENABLE ROW LEVEL SECURITY', *grant_sql(f'"{name}"', ())]


def _default_name(table: str) -> str:
    return f"{table}_default"
