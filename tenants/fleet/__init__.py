"""The operators' view: pools, replicas, operators, and snapshots for the gateways."""
