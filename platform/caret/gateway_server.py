"""The gateway process: the data plane in uvicorn, without the console's settings and database."""

from typing import Final

from django.conf import settings

from caret.composition.config import read_data_plane_config
from caret.foundation.environment import env_int, env_text
from caret.foundation.log_config import configure_logging
from caret.foundation.web.server import run_server
from inference.gateway.protocol.frames import MAX_FRAME_CHARS

_CLOSING_S: Final = 1  # for closing connections, after the drain timeout


def main(application: str = "caret.composition.gateway_app:build_gateway_application") -> int:
    """Run until SIGTERM or SIGINT.

    `application` is a module and a factory; a benchmark passes one that measures the event loop.
    Raises BadSetting before anything has started.
    """
    host = env_text("CARET_GATEWAY_HOST", "127.0.0.1")
    port = env_int("CARET_GATEWAY_PORT", 8401, low=1, high=65_535)
    config = read_data_plane_config()
    configure_logging("gateway")
    # Channels needs Django's settings. Without DATABASES, this process cannot access a database.
    settings.configure(CHANNEL_LAYERS={}, DATABASES={})
    run_server(
        application,
        factory=True,
        host=host,
        port=port,
        # Frames above the protocol's limit are still read, so that the client gets an error frame
        # instead of a lost connection. A character has at most four bytes.
        ws_max_size=4 * MAX_FRAME_CHARS,
        lifespan="on",
        # WebSockets are closed by then (inference/consumers/websocket.py). Only HTTP responses that
        # take longer are cut off.
        timeout_graceful_shutdown=config.drain_timeout_s + _CLOSING_S,
    )
    return 0
