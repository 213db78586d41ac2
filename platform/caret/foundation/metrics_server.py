"""Metrics of a process of the control plane, on a port of their own: for the operator's network."""

from prometheus_client import start_http_server
from prometheus_client.registry import CollectorRegistry

from caret.foundation.environment import env_int, env_text


def serve_metrics(registry: CollectorRegistry) -> None:
    """From a thread, until the process ends; not at all where no port is set. Raises BadSetting,
    OSError."""
    host = env_text("CARET_METRICS_HOST", "127.0.0.1")
    port = env_int("CARET_CONTROL_PLANE_METRICS_PORT", 0, low=0, high=65_535)
    if port:
        start_http_server(port, addr=host, registry=registry)
