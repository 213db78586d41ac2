"""Lookups that clients make besides completions. They need a key but have no rate limits."""

import msgspec

from caret.contracts.policy import Tier
from caret.foundation.web.connections import authenticate_connection
from inference.completion.request import Principal, tier_of
from inference.consumers.base import client_address, read_api_key
from inference.consumers.http.http_consumer import HttpConsumer
from inference.consumers.http.openai_schemas import error_body
from inference.consumers.http.responses import encode
from inference.errors import CompletionError
from inference.gateway.authenticate import authenticate
from inference.pipeline import DataPlane


class ModelsListConsumer(HttpConsumer):
    """Answers a lookup. Subclasses implement `build_response`."""

    methods: tuple[bytes, ...] = (b"GET",)

    def __init__(self, plane: DataPlane) -> None:
        super().__init__()
        self.plane = plane
        self.principal: Principal  # set when `authorize` succeeds

    def authorize(self) -> None:
        now_ms = self.plane.clock.now_ms()
        key_text = read_api_key(self.scope)
        address = client_address(self.scope)
        self.principal = authenticate(
            self.plane.snapshots, key_text, now_ms=now_ms, address=address
        )
        authenticate_connection(self.scope)

    async def respond(self, body: bytes) -> None:
        await self.send_json(encode(self.build_response(body)))

    def build_response(self, body: bytes) -> msgspec.Struct:
        """Return the response. Raises BadRequest."""
        raise NotImplementedError

    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)

    def list_models(self) -> list[str]:
        """Return exactly the models that the key may use, the fast tier's first."""
        snapshot, modes = self.principal.snapshot, self.principal.modes
        names = (
            name
            for tier in Tier
            if any(tier_of(mode) is tier for mode in modes)
            for name in self.plane.pool_selector.list_models(snapshot, tier)
        )
        return list(dict.fromkeys(names))


class ModelInfo(msgspec.Struct, frozen=True):
    id: str
    object: str = "model"
    created: int = 0  # unknown
    owned_by: str = "caret"


class Models(msgspec.Struct, frozen=True):
    data: list[ModelInfo]
    object: str = "list"


class ModelsConsumer(ModelsListConsumer):
    """`GET /v1/models` in OpenAI's format."""

    def build_response(self, _body: bytes) -> Models:
        return Models([ModelInfo(name) for name in self.list_models()])
