"""The time for billing: the earlier of two clocks.

One clock that runs ahead therefore cannot close a month that is not over, and cannot post a day
that is not over.
"""

from datetime import datetime

from django.db import connection


def choose_billing_time(now: datetime) -> datetime:
    """Return the earlier of `now` and the database's time. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        database_time: datetime = cursor.fetchone()[0]
    return min(now, database_time)
