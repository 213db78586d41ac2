"""What crosses the planes: frozen, versioned structs, and nothing else."""
