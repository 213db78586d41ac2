"""Retention: how long each data class is kept, and how its deletion is proved.

tables.py           counts, holds and deletes the rows of a data class
operations.py       changes rules and legal holds
purge.py            deletes expired rows in batches that survive a crash
certificates.py     writes signed deletion certificates
queries.py          reports what is stored, due, overdue and held
"""
