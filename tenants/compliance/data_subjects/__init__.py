"""Data subject requests: export and erase the personal data of one user in a tenant.

data_inventory.py         lists where personal data is stored, and which of it is exported
export_bundle.py          writes a user's data as a ZIP with a signed manifest
verification.py           verifies that manifest offline
operations.py             requests an erasure: encryption keys are destroyed at once
erasure_tombstones.py     records each erasure outside the database's backups
replay_after_restore.py   repeats erasures that a restored backup does not have
erasure_worker.py         performs the requested erasures, and continues after a crash
pseudonymization.py       replaces user IDs in rows whose counts are kept
anonymization.py          removes names and e-mail addresses
tenant_purge.py           removes the other data of an erased tenant
erasure_certificate.py    writes the deletion certificate
queries.py                finds users for operators, and the state of erasures
"""
