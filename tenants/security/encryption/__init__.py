"""Envelope encryption: sealed data of a tenant opens with a chain of keys.

    root key      outside every database: a secret of the installation, or a KMS
      tenant key    random, one in force for each tenant, wrapped by the root key
        data key      random, one for each scope (such as an export), wrapped by the tenant key
          sealed data   bound to its context: tenant, table, column, row and data key

operations.py     seal_in_scope, shred_scope, shred_tenant
queries.py        open_sealed, find_destruction_proofs
rotation.py       replaces root keys and tenant keys without downtime
startup_check.py  refuses to start a process that cannot open the data
"""
