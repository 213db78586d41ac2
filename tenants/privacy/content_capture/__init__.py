"""Prompts and completions of users who consented, stored encrypted.

ingestion.py         reads captured content from the Redis stream that gateways fill
operations.py        encrypts it and writes it to the object store
object_store.py      stores, reads and deletes the encrypted objects
erasure.py           erases it, for example after a withdrawal or at the end of its retention
training_export.py   exports the data set that may train models
"""
