"""Parts of the tasks of all domains: how failures are logged, and metrics."""
