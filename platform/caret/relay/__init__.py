"""The relay: replicates snapshots to a region, and forwards usage home from it."""
