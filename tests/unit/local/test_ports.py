"""The ports of the programs that `make up` starts."""

import errno
import socket

import pytest

from caret.foundation.environment import BadSetting
from caret.local.errors import PortInUse
from caret.local.ports import LOOPBACK, Port, is_free, ports_from_environment, require_free
from tests.stack.ports import free_port, free_ports


def test_the_error_for_a_port_in_use_names_the_port_and_its_setting() -> None:
    with socket.create_server((LOOPBACK, 0)) as listener:
        number = listener.getsockname()[1]
        port = Port(number=number, setting="CARET_GATEWAY_PORT", purpose="the gateway")

        with pytest.raises(PortInUse) as exc_info:
            require_free(port)

    assert str(number) in str(exc_info.value)
    assert "CARET_GATEWAY_PORT" in str(exc_info.value)
    assert int(exc_info.value.exit_code) == 3  # the exit code for a port in use


def test_a_port_in_use_on_all_addresses_is_not_free() -> None:
    with socket.create_server(("0.0.0.0", 0)) as listener:  # noqa: S104  # only within this test
        assert not is_free(listener.getsockname()[1])


def test_a_free_port_is_accepted() -> None:
    (number,) = free_ports(1)

    require_free(Port(number=number, setting="CARET_GATEWAY_PORT", purpose="the gateway"))


def test_the_ports_have_defaults() -> None:
    ports = ports_from_environment()

    assert (ports.console.number, ports.gateway.number, ports.engine.number) == (8400, 8401, 8402)


@pytest.mark.parametrize("text", ["0", "65536", "http", "-1", "84.01", ""])
def test_the_error_for_an_invalid_port_names_its_setting(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CARET_CONSOLE_PORT", text)

    with pytest.raises(BadSetting, match="CARET_CONSOLE_PORT"):
        ports_from_environment()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        (None, "http://127.0.0.1:8400"),
        ("", "http://127.0.0.1:8400"),
        ("0.0.0.0", "http://127.0.0.1:8400"),  # noqa: S104  # a possible setting
        ("::", "http://[::1]:8400"),
        ("127.0.0.2", "http://127.0.0.2:8400"),
        ("fd00::1", "http://[fd00::1]:8400"),
    ],
)
def test_the_console_url_has_the_address_where_the_console_listens(
    monkeypatch: pytest.MonkeyPatch, host: str | None, url: str
) -> None:
    if host is not None:
        monkeypatch.setenv("CARET_CONSOLE_HOST", host)

    assert ports_from_environment().console.url == url


def test_a_port_is_checked_on_the_host_that_will_be_bound() -> None:
    number = free_port()
    port = Port(
        number=number, setting="CARET_GATEWAY_PORT", purpose="the gateway", host="127.0.0.2"
    )
    with socket.create_server(("127.0.0.2", number)):
        with pytest.raises(PortInUse):
            require_free(port)

        assert is_free(number)
        assert not is_free(number, "0.0.0.0")  # noqa: S104  # a possible setting


def test_the_error_for_a_port_without_permission_names_its_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_listener: socket.socket, _address: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setenv("CARET_CONSOLE_PORT", "80")
    monkeypatch.setattr(socket.socket, "bind", refuse)

    with pytest.raises(BadSetting, match="CARET_CONSOLE_PORT is 80"):
        require_free(ports_from_environment().console)


def test_the_error_for_a_host_of_another_machine_names_its_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CARET_GATEWAY_HOST", "192.0.2.1")

    with pytest.raises(BadSetting, match="CARET_GATEWAY_HOST"):
        require_free(ports_from_environment().gateway)
