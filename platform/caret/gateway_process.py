"""The gateway's process: the data plane behind uvicorn, without Django's settings or databases.

CARET_TRUSTED_PROXIES names the addresses whose X-Forwarded-* headers count; nobody's do by default.
"""

from typing import Final

import uvicorn
from django.conf import settings

from caret.foundation.environment import env_int, env_list, env_text
from caret.foundation.logs import configure_logging
from caret.foundation.web.gathered_writes import GatheringHttp
from caret.foundation.web.paced_closing import PacedWebSocket
from caret.wiring.config import data_plane_config
from inference.consumers.generation import MAX_BODY_BYTES
from inference.gateway.frames import MAX_FRAME_CHARS

_CLOSING_S: Final = 1  # what is left of it then


def main(application: str = "caret.wiring.application:gateway_application") -> int:
    """Runs until SIGTERM or SIGINT. Raises BadSetting before anything is started.

    `application`: module and factory, for whoever wants to look at the process from inside.
    """
    host = env_text("CARET_GATEWAY_HOST", "127.0.0.1")
    port = env_int("CARET_GATEWAY_PORT", 8401, low=1, high=65_535)
    proxies = env_list("CARET_TRUSTED_PROXIES")
    config = data_plane_config()
    configure_logging("gateway")
    # Channels asks Django for its settings; this process has none, so no database to reach.
    settings.configure(CHANNEL_LAYERS={}, DATABASES={})
    uvicorn.run(
        application,
        factory=True,
        host=host,
        port=port,
        loop="uvloop",
        http=GatheringHttp,
        ws=PacedWebSocket,
        # Larger frames than the protocol's limit are still read, to be refused by an error frame
        # instead of a lost connection.
        ws_max_size=max(4 * MAX_FRAME_CHARS, MAX_BODY_BYTES),
        ws_per_message_deflate=False,  # milliseconds of CPU for kilobytes of loopback or LAN
        lifespan="on",
        # Whoever else could say where he comes from would use a key from outside its networks.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
        log_config=None,
        log_level="warning",  # at INFO it logs paths with their queries
        access_log=False,
        server_header=False,
        # Connections end themselves by then (stream.py); what is cut is HTTP that lasts longer.
        timeout_graceful_shutdown=config.drain_s + _CLOSING_S,
    )
    return 0
