"""What Tabby's agent asks besides completions: health and settings.

It asks again on every error, and shows "disconnected" when health fails: a pool that is down makes
none. It takes the version for Tabby's own, and shuns what is newer than it.
"""

import msgspec

from caret.contracts.policy import Tier
from inference.consumers.lookups import LookupConsumer


class Version(msgspec.Struct, frozen=True):
    git_describe: str = "v0.31.2"  # the Tabby server that we answer like
    build_date: str = ""
    build_timestamp: str = ""
    git_sha: str = ""


class TabbyHealth(msgspec.Struct, frozen=True):
    """All fields are there because an agent crashes without; what they would say of the machine
    is nobody's business."""

    model: str
    chat_model: str | None
    device: str = "cuda"
    arch: str = ""
    cpu_info: str = ""
    cpu_count: int = 1
    cuda_devices: list[str] = []
    version: Version = Version()
    webserver: bool = True


class TabbyHealthConsumer(LookupConsumer):
    methods = (b"GET", b"POST")

    def look_up(self, _body: bytes) -> TabbyHealth:
        pools = self.plane.router.pools
        snapshot = self.principal.snapshot
        return TabbyHealth(
            model=pools.of(snapshot, Tier.FAST).model,
            chat_model=pools.of(snapshot, Tier.QUALITY).model,
        )


class ServerSetting(msgspec.Struct, frozen=True):
    disable_client_side_telemetry: bool = True  # keeps plugins from posting usage to their vendor


class ServerSettingConsumer(LookupConsumer):
    def look_up(self, _body: bytes) -> ServerSetting:
        return ServerSetting()
