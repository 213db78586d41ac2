"""The list of models, and the base class of endpoints with an API key and without rate limits."""

from itertools import chain
from typing import Final

import msgspec

from caret.contracts.policy import Mode, Tier
from caret.foundation.web.connections import mark_connection_authenticated
from inference.completion.request import Principal, tier_of
from inference.consumers.base import client_address, read_api_key
from inference.consumers.http.http_consumer import HttpConsumer
from inference.consumers.http.openai_schemas import error_body
from inference.consumers.http.responses import encode
from inference.errors import CompletionError, UnknownModel
from inference.gateway.authenticate import authenticate
from inference.pipeline import DataPlane
from inference.routing.pool_selection import DEFAULT_MODEL_NAMES

MODEL_PATH: Final = "/v1/models/"  # followed by the name of a model
MODEL_ROUTE: Final = f"{MODEL_PATH}{{name}}"  # in the table of routes and in OpenAPI


class AuthenticatedJsonConsumer(HttpConsumer):
    """Responds with JSON to a request with an API key, without rate limits.

    Subclasses implement `build_response`.
    """

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
        mark_connection_authenticated(self.scope)

    async def respond(self, body: bytes) -> None:
        await self.send_json(encode(self.build_response(body)))

    def build_response(self, body: bytes) -> msgspec.Struct:
        """Return the response. Raises CompletionError."""
        raise NotImplementedError

    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)

    def list_models(self) -> list[str]:
        """Return the models that the key may use, without duplicates, the fast tier's first."""
        return list(dict.fromkeys(chain.from_iterable(self.list_models_by_tier().values())))

    def list_models_by_tier(self) -> dict[Tier, list[str]]:
        """Return the models that the key may use in each tier, the tier's default first.

        The fast tier comes first. A tier's list is empty if the key may use no mode of the tier.
        """
        snapshot, modes = self.principal.snapshot, self.principal.modes
        allowed_tiers = {tier_of(mode) for mode in modes}
        selector = self.plane.pool_selector
        return {
            tier: selector.list_models(snapshot, tier) if tier in allowed_tiers else []
            for tier in Tier
        }


class ModelCapabilities(msgspec.Struct, frozen=True):
    """The capabilities that Mistral's clients read."""

    completion_chat: bool
    completion_fim: bool
    function_calling: bool = False
    fine_tuning: bool = False
    vision: bool = False


class ModelInfo(msgspec.Struct, frozen=True):
    id: str  # the model's name
    capabilities: ModelCapabilities
    object: str = "model"
    created: int = 0  # Unix seconds; 0: unknown
    owned_by: str = "caret"
    type: str = "base"  # Mistral's clients require it


class Models(msgspec.Struct, frozen=True):
    data: list[ModelInfo]
    object: str = "list"


class ModelsConsumer(AuthenticatedJsonConsumer):
    """`GET /v1/models` in OpenAI's and Mistral's format."""

    def build_response(self, _body: bytes) -> Models:
        return Models([_describe_model(self, name) for name in self.list_models()])


class ModelConsumer(AuthenticatedJsonConsumer):
    """`GET /v1/models/NAME`. A name may contain slashes.

    `caret` and `default` stand for the first model of the list.
    """

    def build_response(self, _body: bytes) -> ModelInfo:
        name = self.scope["path"].removeprefix(MODEL_PATH)
        names = self.list_models()
        # "" is also in DEFAULT_MODEL_NAMES, but a path without a name names no model.
        if name and name in DEFAULT_MODEL_NAMES and names:
            name = names[0]
        if name not in names:
            message = "This model does not exist. GET /v1/models lists the models of this key."
            raise UnknownModel("", message)  # without the name, which may be code or a key
        return _describe_model(self, name)


def _describe_model(consumer: AuthenticatedJsonConsumer, name: str) -> ModelInfo:
    models, modes = consumer.list_models_by_tier(), consumer.principal.modes
    capabilities = ModelCapabilities(
        completion_chat=name in models[Tier.QUALITY] and Mode.CHAT in modes,
        completion_fim=name in models[Tier.FAST] and Mode.FIM in modes,
    )
    return ModelInfo(name, capabilities)
