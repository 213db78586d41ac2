"""Hosts on one machine: network namespaces with an address each, behind one bridge.

The bridge has its own namespace, so the machine's network is not changed. Only the networks are
separate: processors, memory, disks and clocks are the machine's. Needs root and iproute2.
"""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PREFIX: Final = "caret-chaos-"
_FOLDER: Final = Path("/run/netns")  # `ip netns` puts a file for each namespace there
_OWN_NAMESPACE: Final = Path("/proc/thread-self/ns/net")
_NEW_NETWORK: Final = 0x4000_0000  # CLONE_NEWNET of sched.h
_libc: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Host:
    """A network namespace with one address."""

    name: str
    namespace: str
    address: str

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Move this thread into the host's network for the block.

        Sockets that the thread opens in the block, and processes that it starts, stay there.
        """
        home = os.open(_OWN_NAMESPACE, os.O_RDONLY)
        try:
            _move_to(_FOLDER / self.namespace)
            yield
        finally:
            _set_namespace(home)
            os.close(home)


@contextmanager
def network(names: tuple[str, ...]) -> Iterator[Mapping[str, Host]]:
    """Create hosts in one network and return them by name.

    Raises SystemExit if the machine does not allow it. Leaving the block removes them. Processes
    still running in them keep their network, which is then silent, until they end.
    """
    _remove_left_behind()
    prefix = f"{_PREFIX}{os.getpid()}-"
    switch = f"{prefix}switch"
    hosts = {
        name: Host(name, prefix + name, f"10.77.0.{number}")
        for number, name in enumerate(names, start=1)
    }
    try:
        _add(switch)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for number, host in enumerate(hosts.values()):
            _connect(host, switch, f"port{number}")
        yield hosts
    finally:
        for namespace in (*(host.namespace for host in hosts.values()), switch):
            _remove(namespace)


def _connect(host: Host, switch: str, port: str) -> None:
    """Connect the host to a port of the switch with a virtual cable."""
    inside = ("-n", host.namespace)
    _add(host.namespace)
    cable = ("link", "add", port, "type", "veth", "peer", "name", "lan", "netns", host.namespace)
    _ip("-n", switch, *cable)
    _ip("-n", switch, "link", "set", port, "master", "bridge", "up")
    _ip(*inside, "link", "set", "lo", "up")
    _ip(*inside, "link", "set", "lan", "up")
    _ip(*inside, "address", "add", f"{host.address}/24", "dev", "lan")


def _add(namespace: str) -> None:
    _ip("netns", "add", namespace)


def _remove(namespace: str) -> None:
    with suppress(subprocess.CalledProcessError):  # it was not created
        _ip("netns", "del", namespace)


def _remove_left_behind() -> None:
    """Remove hosts of runs that were killed."""
    for path in _FOLDER.glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path(f"/proc/{pid}").exists():
            _remove(path.name)


def _ip(*arguments: str) -> None:
    try:
        subprocess.run(("ip", *arguments), check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit("`ip` is not installed: install iproute2.") from None
    except subprocess.CalledProcessError as error:
        if arguments[:2] == ("netns", "add"):
            raise SystemExit(
                f"This machine does not allow network namespaces: {error.stderr}"
            ) from None
        raise


def _move_to(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _set_namespace(descriptor)
    finally:
        os.close(descriptor)


def _set_namespace(descriptor: int) -> None:
    if _libc.setns(descriptor, _NEW_NETWORK) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
