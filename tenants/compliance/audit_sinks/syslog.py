"""Delivery by syslog: RFC 5424 messages over TCP (RFC 6587) or TLS (RFC 5425).

Syslog has no acknowledgement. Instead, the sender closes its side of the connection after the last
message, and waits until the receiver closes the other side. If the receiver resets the connection,
it has not read everything, and the delivery has failed.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from caret.foundation.egress.dns_lookup import resolve
from tenants.compliance.audit_sinks.delivery import (
    ADDRESS_NOT_ALLOWED,
    BAD_CERTIFICATE,
    SILENT,
    TIMEOUT_S,
    TLS_FAILED,
    UNKNOWN_HOST,
    UNREACHABLE,
    Destination,
    SinkDeliveryError,
)
from tenants.compliance.audit_sinks.messages import SinkMessage, build_syslog_frame

# The wait for the receiver. If it keeps its side open for longer, it is assumed to have read
# everything.
_CLOSE_TIMEOUT_S: Final = 2.0
_CHUNK_BYTES: Final = 4096


async def send_syslog(destination: Destination, messages: Sequence[SinkMessage]) -> None:
    """Send all messages over one connection. Raises SinkDeliveryError."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await _open_connection(destination)
            try:
                writer.writelines(build_syslog_frame(message) for message in messages)
                await writer.drain()
                await _close_connection(reader, writer)
            finally:
                writer.transport.abort()
    except TimeoutError as error:
        raise SinkDeliveryError(SILENT) from error
    except socket.gaierror as error:
        raise SinkDeliveryError(UNKNOWN_HOST) from error
    except ssl.SSLCertVerificationError as error:
        raise SinkDeliveryError(BAD_CERTIFICATE) from error
    except ssl.SSLError as error:
        raise SinkDeliveryError(TLS_FAILED) from error
    except OSError as error:
        raise SinkDeliveryError(UNREACHABLE) from error


async def _open_connection(
    destination: Destination,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, with TLS if the address requires it. Raises SinkDeliveryError, OSError."""
    address = destination.address
    connected = await _connect(destination)
    try:
        return await asyncio.open_connection(
            sock=connected,
            ssl=ssl.create_default_context() if address.is_encrypted else None,
            server_hostname=address.host if address.is_encrypted else None,
            ssl_shutdown_timeout=_CLOSE_TIMEOUT_S if address.is_encrypted else None,
        )
    except BaseException:
        connected.close()
        raise


async def _connect(destination: Destination) -> socket.socket:
    """Connect to the first IP address of the host that is permitted and reachable.

    Raises SinkDeliveryError, OSError.
    """
    loop, egress = asyncio.get_running_loop(), destination.make_egress()
    host, port = destination.address.host, destination.address.port
    failure: OSError | None = None
    for info in await resolve(host, port):  # entries of socket.getaddrinfo
        try:
            new_socket = egress.open_socket(info)
        except OSError as error:
            failure = error
            continue
        try:
            await loop.sock_connect(new_socket, info[4])  # info[4]: IP address and port
        except OSError as error:
            new_socket.close()
            failure = error
        except BaseException:
            new_socket.close()  # cancelled, for example by the timeout
            raise
        else:
            return new_socket
    if egress.has_refused:
        raise SinkDeliveryError(ADDRESS_NOT_ALLOWED) from failure
    raise failure or OSError("the name has no addresses")


async def _close_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close this side, and wait for the receiver. Raises OSError if it resets the connection."""
    if not writer.can_write_eof():
        writer.close()  # TLS: sends close_notify, and waits for the receiver's close_notify
        with suppress(TimeoutError):  # of `ssl_shutdown_timeout`
            await writer.wait_closed()
        return
    writer.write_eof()
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            while await reader.read(_CHUNK_BYTES):
                pass
