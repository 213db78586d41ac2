"""Indexes of partitioned tables, built while the table is read and written.

Postgres cannot build an index concurrently on a partitioned table. So the table's index is created
first, empty and invalid. From then on, Postgres gives each new partition its own index. Then the
index of each older partition is built concurrently and attached. When the last one is attached, the
table's index becomes valid. After a failure, another run continues where the failed one stopped,
even if a partition was created in between.
"""

from django.contrib.postgres.operations import NotInTransactionMixin
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.backends.ddl_references import Statement
from django.db.migrations import AddIndex
from django.db.migrations.state import ProjectState

# Returns one row if the index exists and is invalid, because its build was interrupted.
_INVALID_INDEX = "SELECT 1 FROM pg_index WHERE indexrelid = to_regclass(%s) AND NOT indisvalid"
# The partitions of the index's table that have no index attached to it yet.
_PARTITIONS_WITHOUT_INDEX = """
SELECT child.inhrelid::regclass::text
FROM pg_index AS parent JOIN pg_inherits AS child ON child.inhparent = parent.indrelid
WHERE parent.indexrelid = %s::regclass AND NOT EXISTS (
    SELECT FROM pg_inherits AS attached JOIN pg_index ON pg_index.indexrelid = attached.inhrelid
    WHERE attached.inhparent = parent.indexrelid AND pg_index.indrelid = child.inhrelid
)
"""


class AddPartitionedIndex(NotInTransactionMixin, AddIndex):
    """AddIndex for a partitioned table. The migration must not be atomic."""

    atomic = False

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._ensure_not_in_transaction(schema_editor)
        model = to_state.apps.get_model(app_label, self.model_name)
        statement = self.index.create_sql(model, schema_editor)
        assert isinstance(statement, Statement)
        table, name = model._meta.db_table, self.index.name
        schema_editor.execute(_create_sql(statement, name=name, table=f'ONLY "{table}"'))
        for partition in _fetch_column(schema_editor, _PARTITIONS_WITHOUT_INDEX, f'"{name}"'):
            # Postgres cuts names after 63 bytes. Keep the end: the month and the index's name.
            index = f"{partition}_{name}"[-63:]
            if _fetch_column(schema_editor, _INVALID_INDEX, f'"{index}"'):
                schema_editor.execute(f'DROP INDEX CONCURRENTLY "{index}"')
            schema_editor.execute(
                _create_sql(statement, name=index, table=f'"{partition}"', method="CONCURRENTLY ")
            )
            schema_editor.execute(f'ALTER INDEX "{name}" ATTACH PARTITION "{index}"')


def _create_sql(statement: Statement, *, name: str, table: str, method: str = "") -> str:
    """Return a CREATE INDEX statement that does nothing if the index exists.

    `method` is "CONCURRENTLY " or empty.
    """
    template = statement.template.replace(
        "CREATE INDEX ", f"CREATE INDEX {method}IF NOT EXISTS ", 1
    )
    parts = {**statement.parts, "name": f'"{name}"', "table": table}
    return str(Statement(template, **parts))


def _fetch_column(schema_editor: BaseDatabaseSchemaEditor, query: str, value: str) -> list[str]:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(query, [value])
        return [str(cell) for (cell,) in cursor.fetchall()]
