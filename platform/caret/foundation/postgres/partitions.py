"""Monthly partitions of tables by `occurred_at`. The tables' owner creates them in advance.

If a month has no partition yet, its rows go to the table's default partition, so none is lost. When
the month's partition is created, these rows are moved there.

The application reads and writes partitions only through their table. A partition inherits neither
the row policies nor the grants of its table, so `_deny_access_sql` denies direct access to it.
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
        create_table = schema_editor.sql_create_table
        schema_editor.sql_create_table = f"{create_table} PARTITION BY RANGE (occurred_at)"
        try:
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        finally:
            schema_editor.sql_create_table = create_table
        table = to_state.apps.get_model(app_label, self.name)._meta.db_table
        default = _default_partition(table)
        schema_editor.execute(f'CREATE TABLE "{default}" PARTITION OF "{table}" DEFAULT')
        for statement in _deny_access_sql(default):
            schema_editor.execute(statement)


def ensure_month(connection: BaseDatabaseWrapper, table: str, month: Month) -> bool:
    """Create the partition of `month` unless it exists; return whether it was created.

    `connection` must be the owner's. The table is locked while rows are moved.
    """
    name = f"{table}_{month.year}_{month.number:02}"
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # If two calls run at once, one waits here, and then finds the partition of the other.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [table])
        cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [f'"{name}"'])
        (exists,) = cursor.fetchone()
        if exists:
            return False
        for statement in _create_month_sql(table, name, month):
            cursor.execute(statement)
    return True


def _create_month_sql(table: str, name: str, month: Month) -> list[str]:
    low, high = month.start.isoformat(), month.plus_months(1).start.isoformat()
    default = _default_partition(table)
    where = f"occurred_at >= '{low} 00:00+00' AND occurred_at < '{high} 00:00+00'"
    return [
        f'LOCK TABLE "{table}" IN ACCESS EXCLUSIVE MODE',
        f'CREATE TABLE "{name}" (LIKE "{table}" INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
        f'INSERT INTO "{name}" SELECT * FROM "{default}" WHERE {where}',  # noqa: S608  # our names
        f'DELETE FROM "{default}" WHERE {where}',  # noqa: S608  # our names
        f'ALTER TABLE "{table}" ATTACH PARTITION "{name}"'
        f" FOR VALUES FROM ('{low} 00:00+00') TO ('{high} 00:00+00')",
        *_deny_access_sql(name),
    ]


def _deny_access_sql(partition: str) -> list[str]:
    """Return statements that deny the application direct access to a partition.

    The application gets no grants. Row-level security without a policy hides all rows even if
    somebody adds a grant by mistake. It is not FORCEd, so that the owner can move rows out of the
    default partition.
    """
    enable = f'ALTER TABLE "{partition}" ENABLE ROW LEVEL SECURITY'
    return [enable, *grant_sql(f'"{partition}"', ())]


def _default_partition(table: str) -> str:
    return f"{table}_default"
