"""The time for billing: the earlier of the worker's clock and the database's clock.

So if only one of the two is ahead, no month is invoiced, and no day is posted, before its end.
"""

from datetime import datetime

from django.db import connection


def choose_billing_time(now: datetime) -> datetime:
    """Return the earlier of `now` and the database's time. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        database_time: datetime = cursor.fetchone()[0]
    return min(now, database_time)
