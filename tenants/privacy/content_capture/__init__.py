"""Prompts and completions of users who consented, stored encrypted.

ingestion.py         reads captured content from the gateways' stream
operations.py        encrypts it and writes it to the object store
erasure.py           erases it after a withdrawal or at the end of its retention
training_export.py   exports the data set that may train models
"""
