"""Whether this gateway can serve; cheap, and open to anybody: `GET /healthz`, and `GET /health` as
clients of llama.cpp ask. A pool that is down does not count: the gateway says so itself."""

from inference.consumers.http import HttpConsumer
from inference.errors import CompletionError, UnauthenticatedRequest
from inference.pipeline import DataPlane


class HealthConsumer(HttpConsumer):
    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self._plane = plane

    async def respond(self, _body: bytes) -> None:
        if not self._plane.snapshots.is_fresh():
            raise UnauthenticatedRequest("snapshots_stale", "", http_status=503)
        await self.send_json(b'{"status":"ok"}')

    def encode_error(self, error: CompletionError) -> bytes:
        return b'{"status":"' + error.code.encode() + b'"}'
