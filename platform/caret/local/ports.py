"""The ports of a local installation, and checks whether they are free."""

import errno
import socket
from dataclasses import dataclass

from caret.foundation.environment import BadSetting, env_int, env_text
from caret.local.errors import PortInUse

LOOPBACK = "127.0.0.1"
# If a server listens on all addresses, clients on this machine reach it at the loopback address.
_REACHABLE = {"": LOOPBACK, "0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104  # nothing is bound


@dataclass(frozen=True, slots=True)
class Port:
    number: int
    setting: str  # the environment variable that changes the port
    purpose: str
    host: str = LOOPBACK  # address to listen on; "", "0.0.0.0" and "::" mean all addresses

    @property
    def reachable_host(self) -> str:
        """The host at which clients on this machine reach the server, as in a URL."""
        host = _REACHABLE.get(self.host, self.host)
        return f"[{host}]" if ":" in host else host

    @property
    def url(self) -> str:
        return f"http://{self.reachable_host}:{self.number}"

    @property
    def host_setting(self) -> str:
        return self.setting.removesuffix("_PORT") + "_HOST"


@dataclass(frozen=True, slots=True)
class Ports:
    console: Port
    gateway: Port
    engine: Port
    quality_engine: Port  # for a second engine
    embeddings: Port
    kv_tier: Port  # LMCache, for the engines
    kv_tier_http: Port  # LMCache's health checks
    kv_store: Port  # the KV tier's Valkey server


def ports_from_environment() -> Ports:
    return Ports(
        console=_read_port(
            "CARET_CONSOLE_PORT",
            8400,
            "the console",
            host=env_text("CARET_CONSOLE_HOST", LOOPBACK),
        ),
        gateway=_read_port(
            "CARET_GATEWAY_PORT",
            8401,
            "the gateway",
            host=env_text("CARET_GATEWAY_HOST", LOOPBACK),
        ),
        engine=_read_port("CARET_ENGINE_PORT", 8402, "the engine"),
        quality_engine=_read_port("CARET_QUALITY_ENGINE_PORT", 8406, "the quality engine"),
        embeddings=_read_port("CARET_EMBEDDINGS_PORT", 8404, "the embedding engine"),
        kv_tier=_read_port("CARET_KV_TIER_PORT", 8407, "the KV tier"),
        kv_tier_http=_read_port("CARET_KV_TIER_HTTP_PORT", 8408, "the KV tier's health check"),
        kv_store=_read_port("CARET_KV_STORE_PORT", 8409, "the KV tier's Valkey server"),
    )


def require_free(*ports: Port) -> None:
    """Check that all ports are free. Call this before any service starts.

    Raises PortInUse for the first port in use. Raises BadSetting for a host that is not an address
    of this machine, and for a port that needs more permissions.
    """
    for port in ports:
        if not _is_free_for(port):
            raise PortInUse(
                f"Port {port.number}, which {port.purpose} needs, is in use by another program."
                f" Stop that program, or choose another port: {port.setting}=NUMBER."
            )


def is_free(number: int, host: str = LOOPBACK) -> bool:
    """Return False if another program uses the port.

    Raises OSError if a server cannot listen on the port for another reason: the host is not an
    address of this machine, or the port needs more permissions.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host or None, number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        # The servers set this option, too: old connections of an earlier run do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


def _is_free_for(port: Port) -> bool:
    try:
        return is_free(port.number, port.host)
    except PermissionError as error:  # such as for a port below 1024
        raise BadSetting(
            f"{port.setting} is {port.number}, where {port.purpose} may not listen: {error}."
        ) from error
    except OSError as error:
        raise BadSetting(
            f"{port.host_setting} is {port.host!r}, where {port.purpose} cannot listen: {error}."
        ) from error


def _read_port(setting: str, default: int, purpose: str, *, host: str = LOOPBACK) -> Port:
    number = env_int(setting, default, low=1, high=65535)
    return Port(number=number, setting=setting, purpose=purpose, host=host)
