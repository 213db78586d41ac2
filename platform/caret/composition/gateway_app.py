"""The ASGI application factory of the gateway."""

from caret.composition.config import read_data_plane_config
from caret.composition.data_plane import open_data_plane
from inference.consumers.application import GatewayApplication


def build_gateway_application() -> GatewayApplication:
    """Build the application from the environment. Raises BadSetting."""
    config = read_data_plane_config()
    return GatewayApplication(
        lambda: open_data_plane(config),
        allowed_origins=config.allowed_origins,
        drain_s=config.drain_timeout_s,
    )
