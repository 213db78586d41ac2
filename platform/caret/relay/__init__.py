"""The relay: replicates snapshots from the home region to another, and forwards usage home."""
