"""File formats of exports: CSV, NDJSON, Parquet and XLSX."""
