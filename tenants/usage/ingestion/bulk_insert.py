"""Rows into a table that grows by thousands a second, each once: an array for each column.

COPY would be quicker, but is refused under row security, and cannot leave out what is there
already. One statement with an array a column is parsed and planned once, whatever the batch's size;
Django's own has a parameter for each value, and Postgres takes 65,535 of them.
"""

from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import Model


def insert_new(model: type[Model], rows: Sequence[Model]) -> None:
    """Leaves out what is there already. Raises DataError and IntegrityError, and then has inserted
    none. One statement."""
    if not rows:
        return
    statement, columns = _statement(model)
    with connection.cursor() as cursor:
        cursor.execute(statement, [[getattr(row, name) for row in rows] for name in columns])


@cache
def _statement(model: type[Model]) -> tuple[str, tuple[str, ...]]:
    """The statement, and the rows' attributes in the order of its parameters."""
    fields = [field for field in model._meta.local_concrete_fields if field.column is not None]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in fields)
    # rel_db_type: of a foreign key its target's, of a field that grows by itself a plain number.
    arrays = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
    table = quote(model._meta.db_table)
    statement = (
        f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
    )
    return statement, tuple(field.attname for field in fields)
