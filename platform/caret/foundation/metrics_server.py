"""The metrics endpoint of a control-plane process, on a port of its own."""

from prometheus_client import start_http_server
from prometheus_client.registry import CollectorRegistry

from caret.foundation.environment import env_int, env_text


def serve_metrics(registry: CollectorRegistry) -> None:
    """Serve metrics from a thread until the process ends.

    Without CARET_CONTROL_PLANE_METRICS_PORT, do nothing. Raises BadSetting, OSError.
    """
    host = env_text("CARET_METRICS_HOST", "127.0.0.1")
    port = env_int("CARET_CONTROL_PLANE_METRICS_PORT", 0, low=0, high=65_535)
    if port:
        start_http_server(port, addr=host, registry=registry)
