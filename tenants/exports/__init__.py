"""What a tenant can carry away: each export is one query, of which every format is written.

definitions.py   which columns of which rows, in which order
stream.py        the rows, one batch after the other, within the tenant's wall
formats.py       the same rows as CSV, NDJSON and Parquet
"""
