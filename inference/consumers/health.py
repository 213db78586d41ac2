"""`GET /healthz`: whether this gateway can serve; cheap, and open to anybody."""

from inference.consumers.http import HttpConsumer
from inference.pipeline import DataPlane


class HealthConsumer(HttpConsumer):
    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self._plane = plane

    async def answer(self, _body: bytes) -> None:
        if self._plane.authority.is_fresh():
            await self.send_whole(200, b"application/json", b'{"status":"ok"}')
        else:
            await self.refuse(503, "snapshots_stale", "The gateway cannot verify keys.")

    async def refuse(self, status: int, code: str, message: str) -> None:
        await self.send_whole(status, b"application/json", b'{"status":"' + code.encode() + b'"}')
