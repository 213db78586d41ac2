"""What is said of teams and users beyond the tenant's policy: it only takes away."""
