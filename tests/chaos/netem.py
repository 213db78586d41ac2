"""A bad network link between two hosts: packets are late or lost, or all are lost (a cut).

    with bad_link(gateway, engine, Quality(delay_ms=100, loss=0.05), environment=environment):
        ...

Usually, a bridge connects the hosts (see `hosts`). During the block, a process holds a tunnel
device on each host, and the host's route to the other host leads to this device. Open connections
stay open and notice the faults only by their own retransmissions and time-outs. When the process
ends, the devices and their routes disappear, and packets use the bridge again.

`tc netem` would do the same inside the kernel, but not all kernels have it. This module needs only
/dev/net/tun.

    python -m tests.chaos.netem SPECIFICATION      a JSON object with the fields of `_Specification`
"""

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import dying_with_parent
from tests.chaos.hosts import Host

_TUNSETIFF: Final = 0x4004_54CA  # of linux/if_tun.h
_TUN_WITHOUT_HEADER: Final = 0x0001 | 0x1000  # IFF_TUN and IFF_NO_PI of linux/if_tun.h
_DEVICE: Final = "wire"
_MAX_PACKET_BYTES: Final = 65_536
_READY: Final = "ready"


class Quality(msgspec.Struct, frozen=True):
    """The delay and the loss of a network link."""

    delay_ms: float = 0.0  # in each direction
    loss: float = 0.0  # share of packets, in each direction; 1: the link is cut


class _Specification(msgspec.Struct, frozen=True):
    hosts: tuple[Host, Host]
    quality: Quality


CUT: Final = Quality(loss=1.0)


@contextmanager
def bad_link(
    first_host: Host, second_host: Host, quality: Quality, *, environment: Mapping[str, str]
) -> Iterator[None]:
    """Make the link between the two hosts bad during the block.

    `environment` is that of the link's process.
    """
    text = msgspec.json.encode(_Specification((first_host, second_host), quality)).decode()
    process = subprocess.Popen(
        dying_with_parent((sys.executable, "-m", "tests.chaos.netem", text)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=dict(environment),
        cwd=REPOSITORY,
        text=True,
    )
    assert process.stdout is not None
    try:
        if process.stdout.readline().strip() != _READY:
            raise RuntimeError(f"no link between {first_host.name} and {second_host.name}")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@dataclass(slots=True)
class _Link:
    """A link between two ends that delays packets and loses some of them."""

    ends: tuple[int, int]  # file descriptors of the devices
    quality: Quality

    def run(self) -> None:
        """Forward packets until the process is killed."""
        opposite_ends = dict(zip(self.ends, reversed(self.ends), strict=True))
        # A heap of delayed packets: time due, number, end that gets the packet, packet.
        late: list[tuple[float, int, int, bytes]] = []
        number = 0  # so that packets that are due at the same time keep their order
        while True:
            wait_s = max(0.0, late[0][0] - time.monotonic()) if late else None
            readable, _, _ = select.select(self.ends, (), (), wait_s)
            for end in readable:
                packet = os.read(end, _MAX_PACKET_BYTES)
                if random.random() >= self.quality.loss:
                    due_s = time.monotonic() + self.quality.delay_ms / 1000
                    heapq.heappush(late, (due_s, number, opposite_ends[end], packet))
                    number += 1
            while late and late[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(late)
                os.write(end, packet)


def _device_to(host: Host, peer: Host) -> int:
    """Open a tunnel device in `host`, and route packets for `peer` to it."""
    with host.entered():
        device = os.open("/dev/net/tun", os.O_RDWR)
        # An `ifreq` of linux/if.h: 16 bytes for the device's name, and its flags.
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", _DEVICE.encode(), _TUN_WITHOUT_HEADER))
        _run("ip", "link", "set", _DEVICE, "up")
        # A route to one address (/32) has priority over the bridge's route to the network (/24).
        route = (f"{peer.address}/32", "dev", _DEVICE, "src", host.address)
        _run("ip", "route", "add", *route)
    return device


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def main(text: str) -> int:
    specification = msgspec.json.decode(text, type=_Specification)
    first_host, second_host = specification.hosts
    link = _Link(
        (_device_to(first_host, second_host), _device_to(second_host, first_host)),
        specification.quality,
    )
    sys.stdout.write(f"{_READY}\n")
    sys.stdout.flush()
    link.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
