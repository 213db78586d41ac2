"""What is kept for how long and why; how it goes, and what proves that it went.

classes.py        the table that drives all of it
stores.py         the rows of a class: counted, held, deleted
operations.py     rules and holds
purge.py          deletes what is due, in batches that survive being killed
certificates.py   signed documents about it, verified offline
queries.py        the report: what is there, due, overdue, held
"""
