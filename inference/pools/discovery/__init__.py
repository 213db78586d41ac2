"""The replicas of each pool: from DNS, Kubernetes, or operators' changes."""
