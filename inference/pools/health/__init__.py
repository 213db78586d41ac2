"""Which replicas are available: health checks, circuit breaker, outlier detection."""
