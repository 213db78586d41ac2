"""The audit log: search, changes of each entry, verification."""
