"""Bulk insert into tables that grow by thousands of rows a second, with an array per column.

COPY would be faster, but row security does not allow it, and it cannot skip existing rows. A
statement with an array for each column is parsed and planned once for any batch size. Django's
bulk_create has a parameter for each value, and Postgres accepts only 65,535 parameters.
"""

from collections.abc import Sequence
from functools import cache

from django.db import connection
from django.db.models import Model


def insert_new_rows(model: type[Model], rows: Sequence[Model]) -> None:
    """Insert rows and skip those that exist. One statement.

    Raises DataError or IntegrityError; no row is inserted then.
    """
    if not rows:
        return
    statement, columns = _build_statement(model)
    with connection.cursor() as cursor:
        cursor.execute(statement, [[getattr(row, name) for row in rows] for name in columns])


@cache
def _build_statement(model: type[Model]) -> tuple[str, tuple[str, ...]]:
    """Return the statement, and the rows' attributes in the order of its parameters."""
    fields = [field for field in model._meta.local_concrete_fields if field.column is not None]
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in fields)
    # rel_db_type returns the type of the target for a foreign key, and a plain integer type for an
    # identity column.
    arrays = ", ".join(f"%s::{field.rel_db_type(connection)}[]" for field in fields)
    table = quote(model._meta.db_table)
    statement = (
        f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}) ON CONFLICT DO NOTHING"  # noqa: S608
    )
    return statement, tuple(field.attname for field in fields)
