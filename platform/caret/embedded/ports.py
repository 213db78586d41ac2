"""The ports of an embedded installation, and whether they are free."""

import socket
from dataclasses import dataclass

from caret.embedded.errors import PortInUse
from caret.foundation.environment import env_int

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Port:
    number: int
    setting: str  # the environment variable that chooses another
    purpose: str


@dataclass(frozen=True, slots=True)
class Ports:
    console: Port
    gateway: Port
    engine: Port


def ports_from_environment() -> Ports:
    return Ports(
        console=_port("CARET_CONSOLE_PORT", 8400, "the console"),
        gateway=_port("CARET_GATEWAY_PORT", 8401, "the gateway"),
        engine=_port("CARET_ENGINE_PORT", 8402, "the engine"),
    )


def require_free(*ports: Port) -> None:
    """Raises PortInUse for the first that somebody listens on, before anything is started."""
    for port in ports:
        if not is_free(port.number):
            raise PortInUse(
                f"Port {port.number}, which {port.purpose} needs, is in use by another program."
                f" Stop that program, or choose another port: {port.setting}=NUMBER."
            )


def is_free(number: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # As the servers do: connections of an earlier run that linger are no obstacle.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, number))
        except OSError:
            return False
        return True


def _port(setting: str, default: int, purpose: str) -> Port:
    return Port(
        number=env_int(setting, default, low=1, high=65535), setting=setting, purpose=purpose
    )
