"""Exports of a tenant's data. An export has the same definition in all formats.

rows.py           columns, values, and the sources of rows
export.py         the definition of an export
definitions/      all exports; a new export is registered there
row_stream.py     an export's rows in batches
formats/          the rows as CSV, NDJSON, Parquet and XLSX
proof.py          the signed document that comes with each file
verification.py   verifies a file and its proof with public keys only
jobs/             runs exports in the background
"""
