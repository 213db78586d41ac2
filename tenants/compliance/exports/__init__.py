"""What a tenant can carry away: each export is one definition, of which every format is written.

rows.py           columns, values, and where rows come from: the words that all of these share
definitions.py    every export there is; a new one is registered there
stream.py         an export's rows, batch after batch, within the tenant's wall
formats.py        the same rows as CSV, NDJSON, Parquet and XLSX
proof.py          the signed document beside each file
verification.py   verifies both, by public keys alone
"""
