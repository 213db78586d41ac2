"""Frozen, versioned structs that the control plane and the data plane exchange."""
