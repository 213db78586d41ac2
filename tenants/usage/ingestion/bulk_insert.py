"""Bulk insert into tables that grow by thousands of rows a second, with an array for each column.

COPY would be faster, but row security does not allow it, and it cannot skip existing rows. With
arrays, the statement is the same for any number of rows. Django's bulk_create has a parameter for
each value, and a statement of Postgres can have only 65,535 parameters.
"""

from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import Model


def insert_new_rows(model: type[Model], rows: Sequence[Model]) -> None:
    """Insert rows of the model, and skip those that exist. One statement.

    Raises DataError or IntegrityError; then no row is inserted.
    """
    if not rows:
        return
    statement, columns = _build_statement(model)
    with connection.cursor() as cursor:
        cursor.execute(statement, [[getattr(row, name) for row in rows] for name in columns])


@cache
def _build_statement(model: type[Model]) -> tuple[str, tuple[str, ...]]:
    """Return the statement, and the rows' attributes in the order of its parameters."""
    # A composite primary key is a field without a column.
    fields = [field for field in model._meta.local_concrete_fields if field.column is not None]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in fields)
    # For a foreign key, rel_db_type returns the type of the column that it refers to. For an
    # identity column, it returns a plain integer type.
    arrays = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
    table = quote(model._meta.db_table)
    statement = (
        f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
    )
    return statement, tuple(field.attname for field in fields)
