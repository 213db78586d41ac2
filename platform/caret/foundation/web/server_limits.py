"""The limits of both HTTP servers (gateway and console) on their clients.

They apply before any authentication and to every protocol: HTTP/1.0, HTTP/1.1 and the handshake of
a WebSocket.
"""

from dataclasses import dataclass
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Final, Self

from caret.foundation.environment import env_int

# File descriptors that a process needs besides its clients: engines, databases, logs.
_OTHER_FILES: Final = 512


@dataclass(frozen=True, slots=True)
class ServerLimits:
    max_header_bytes: int = 64 * 1024  # request line and headers together
    max_headers: int = 100
    # To the last header: from the opening of the connection, or from a later request's first byte.
    header_timeout_s: float = 10.0
    body_timeout_s: float = 15.0  # from the last header to the end of the body
    send_timeout_s: float = 15.0  # for a client to read what is buffered for it
    keep_alive_s: float = 75.0  # between two requests on a connection
    max_requests_per_connection: int = 10_000
    max_connections: int = 20_000  # of the process
    max_unauthenticated: int = 2_048  # connections of the process without a valid credential
    max_unauthenticated_per_address: int = 256  # those of one IPv4 address or IPv6 /64 network

    @classmethod
    def from_environment(cls) -> Self:
        """Read the settings.

        Raises BadSetting.
        """
        default = cls()
        return cls(
            max_header_bytes=env_int(
                "CARET_MAX_HEADER_BYTES", default.max_header_bytes, low=1_024, high=1024 * 1024
            ),
            max_headers=env_int("CARET_MAX_HEADERS", default.max_headers, low=10, high=10_000),
            header_timeout_s=_read_seconds("CARET_HEADER_TIMEOUT_S", default.header_timeout_s),
            body_timeout_s=_read_seconds("CARET_BODY_TIMEOUT_S", default.body_timeout_s),
            send_timeout_s=_read_seconds("CARET_SEND_TIMEOUT_S", default.send_timeout_s),
            keep_alive_s=_read_seconds("CARET_KEEP_ALIVE_S", default.keep_alive_s),
            max_requests_per_connection=_read_count(
                "CARET_MAX_REQUESTS_PER_CONNECTION", default.max_requests_per_connection
            ),
            max_connections=_read_count("CARET_MAX_CONNECTIONS", default.max_connections),
            max_unauthenticated=_read_count(
                "CARET_MAX_UNAUTHENTICATED_CONNECTIONS", default.max_unauthenticated
            ),
            max_unauthenticated_per_address=_read_count(
                "CARET_MAX_UNAUTHENTICATED_PER_ADDRESS", default.max_unauthenticated_per_address
            ),
        )


def _read_seconds(name: str, default: float) -> float:
    return float(env_int(name, int(default), low=1, high=3_600))


def _read_count(name: str, default: int) -> int:
    return env_int(name, default, low=1, high=1_000_000)


def raise_file_limit(wanted_connections: int) -> int:
    """Raise the process's soft limit of open files; return how many of the connections it allows.

    A server without free file descriptors cannot even reject a client.
    """
    soft, hard = getrlimit(RLIMIT_NOFILE)
    wanted_files = wanted_connections + _OTHER_FILES
    if soft != RLIM_INFINITY and soft < wanted_files:
        soft = wanted_files if hard == RLIM_INFINITY else min(wanted_files, hard)
        setrlimit(RLIMIT_NOFILE, (soft, hard))
    allowed_files = wanted_files if soft == RLIM_INFINITY else soft
    return min(wanted_connections, max(allowed_files - _OTHER_FILES, 1))
