"""Retention: how long each data class is kept, and how its deletion is proved.

tables.py           counts and deletes the rows of a data class, except those on legal hold
rules_in_force.py   reads the rules and legal holds in force
operations.py       changes rules and legal holds
purge.py            deletes expired rows in batches that survive a crash
certificates.py     writes signed deletion certificates
verification.py     verifies certificates offline
queries.py          reports how many records are stored, due, overdue and on hold
"""
