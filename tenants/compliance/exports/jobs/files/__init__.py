"""The files of an export job, encrypted in the object store.

sealed_objects.py   encrypted objects of a job
parts.py            encodes the rows that a job has read
export_file.py      writes the file that users download
evidence_pack.py    writes the file of an evidence pack, a ZIP of all exports
"""
