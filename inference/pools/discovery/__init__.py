"""The replicas of each pool: from DNS, from Kubernetes, or added by operators."""
