"""The gateway's process: the data plane behind uvicorn, without Django's settings or databases."""

from typing import Final

from django.conf import settings

from caret.composition.config import data_plane_config
from caret.foundation.environment import env_int, env_text
from caret.foundation.log_config import configure_logging
from caret.foundation.web.server import run_server
from inference.consumers.completions import MAX_BODY_BYTES
from inference.gateway.protocol.frames import MAX_FRAME_CHARS

_CLOSING_S: Final = 1  # what is left of it then


def main(application: str = "caret.composition.gateway_app:gateway_application") -> int:
    """Run until SIGTERM or SIGINT. Raises BadSetting before anything is started.

    `application`: module and factory; a benchmark passes one that watches the event loop.
    """
    host = env_text("CARET_GATEWAY_HOST", "127.0.0.1")
    port = env_int("CARET_GATEWAY_PORT", 8401, low=1, high=65_535)
    config = data_plane_config()
    configure_logging("gateway")
    # Channels asks Django for its settings; this process has none, so no database to reach.
    settings.configure(CHANNEL_LAYERS={}, DATABASES={})
    run_server(
        application,
        factory=True,
        host=host,
        port=port,
        # Larger frames than the protocol's limit are still read, to be refused by an error frame
        # instead of a lost connection.
        ws_max_size=max(4 * MAX_FRAME_CHARS, MAX_BODY_BYTES),
        lifespan="on",
        # Connections end themselves by then (stream.py); only longer HTTP responses are cut.
        timeout_graceful_shutdown=config.drain_timeout_s + _CLOSING_S,
    )
    return 0
