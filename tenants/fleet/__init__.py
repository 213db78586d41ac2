"""The installation as operators see it: pools, replicas, operators, and snapshots for gateways."""
