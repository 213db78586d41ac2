"""Keys of keys: what is sealed for a tenant opens by a chain of keys, or not at all.

    root key      outside every database: a secret of the installation, or a KMS
      tenant key    random, one in force for each tenant, wrapped by the root key
        data key      random, one for each scope (a user, a day), wrapped by the tenant key
          what is sealed, with its place (tenant, table, column, row, data key) bound into the seal

operations.py    seal_for, shred_scope, shred_tenant
queries.py       open_sealed, find_evidence
rotation.py      new keys of keys, while all of it is in use
startup_check.py a process that could open nothing does not start
"""
