"""HTTP to addresses that tenants have named: never into our own network.

Whom a connection has reached is looked at when it stands and before anything is sent, so that no
name can lead elsewhere between a look and its use.
"""

import ipaddress
import socket
from typing import Any, Final

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError

TIMEOUT_S: Final = 5.0


def guarded_session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False  # no proxy, which would go anywhere
    adapter = _GuardedAdapter()
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


class _GuardedAdapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        manager: PoolManager = self.poolmanager
        manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}

    def send(self, request: Any, **kwargs: Any) -> requests.Response:  # type: ignore[override]
        kwargs["timeout"] = TIMEOUT_S
        return super().send(request, **kwargs)


class _HttpConnection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _looked_at(self, super()._new_conn())


class _HttpsConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _looked_at(self, super()._new_conn())


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HttpConnection


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HttpsConnection


def _looked_at(connection: HTTPConnection, reached: socket.socket) -> socket.socket:
    address = ipaddress.ip_address(reached.getpeername()[0])
    mapped = getattr(address, "ipv4_mapped", None)
    if (mapped or address).is_global or settings.WEBHOOKS_TO_PRIVATE:
        return reached
    reached.close()
    raise NewConnectionError(connection, "This address is of a private network.")
