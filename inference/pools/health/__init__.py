"""The available replicas: health checks, circuit breaker and outlier detection."""
