"""What time it is for billing: the earlier of two clocks, so that one that runs ahead closes no
month and books no day that is not over."""

from datetime import datetime

from django.db import connection


def safe_billing_time(now: datetime) -> datetime:
    """`now` of this process, or the database's. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        databases: datetime = cursor.fetchone()[0]
    return min(now, databases)
