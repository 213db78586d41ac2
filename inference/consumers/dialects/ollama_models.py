"""Ollama's endpoints for models and the version. Requests for embeddings are rejected."""

from typing import Final

import msgspec

from caret.contracts.policy import ANY_LANGUAGE, Tier
from inference.consumers.dialects.models_list import AuthenticatedJsonConsumer
from inference.consumers.dialects.ollama_generate import decode_body, error_body, read_model_name
from inference.context.prompt.token_budget import PROMPT_TOKENS
from inference.errors import BadRequest, CompletionError

# The version of Ollama that we emulate.
VERSION: Final = "0.12.0"
# Clients search for `.Suffix` to learn whether the model supports fill-in-the-middle.
_TEMPLATE: Final = "{{ if .Suffix }}{{ .Prompt }}{{ .Suffix }}{{ else }}{{ .Prompt }}{{ end }}"


class Details(msgspec.Struct, frozen=True):
    parent_model: str = ""
    format: str = ""
    family: str = "caret"
    families: tuple[str, ...] = ("caret",)
    parameter_size: str = ""
    quantization_level: str = ""


class OllamaModel(msgspec.Struct, frozen=True):
    name: str
    model: str
    # The defaults of the following fields mean that the value is unknown.
    modified_at: str = "1970-01-01T00:00:00Z"
    size: int = 0  # bytes
    digest: str = ""
    details: Details = Details()


class RunningModel(OllamaModel, frozen=True):
    expires_at: str = "9999-12-31T23:59:59Z"  # never
    size_vram: int = 0  # bytes; unknown
    # Tokens: the default of the fast tier. The budget of the model's pool may differ.
    context_length: int = PROMPT_TOKENS[Tier.FAST]


class RunningModels(msgspec.Struct, frozen=True):
    models: list[RunningModel]


# Only for the OpenAPI description.
class EmbedResponse(msgspec.Struct, frozen=True):
    """Never sent: no model of Caret computes embeddings for clients."""

    model: str
    embeddings: list[list[float]]


class Tags(msgspec.Struct, frozen=True):
    models: list[OllamaModel]


class OllamaVersion(msgspec.Struct, frozen=True):
    version: str = VERSION


class ModelBody(msgspec.Struct, frozen=True):
    model: str | None = None
    name: str | None = None  # older name of `model`


class ShowResponse(msgspec.Struct, frozen=True):
    model_info: dict[str, str | int]
    modelfile: str = ""
    parameters: str = ""
    template: str = _TEMPLATE
    details: Details = Details()
    capabilities: tuple[str, ...] = ("completion", "insert")  # insert: fill-in-the-middle
    modified_at: str = "1970-01-01T00:00:00Z"  # unknown


class OllamaConsumer(AuthenticatedJsonConsumer):
    def select_pool(self, request: ModelBody) -> str:
        """Return the name of the model's pool in the fast tier. Raises CompletionError."""
        return self.plane.pool_selector.select(
            self.principal.snapshot,
            Tier.FAST,
            language=ANY_LANGUAGE,
            model=read_model_name(request.model or request.name),
        )

    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)


class TagsConsumer(OllamaConsumer):
    """`GET /api/tags`: the models that the key may use."""

    def build_response(self, _body: bytes) -> Tags:
        return Tags([OllamaModel(name, name) for name in self.list_models()])


class RunningModelsConsumer(OllamaConsumer):
    """`GET /api/ps`: the loaded models, which are all models that the key may use."""

    def build_response(self, _body: bytes) -> RunningModels:
        return RunningModels([RunningModel(name, name) for name in self.list_models()])


class VersionConsumer(OllamaConsumer):
    """`GET /api/version`: the version of Ollama that we emulate."""

    def build_response(self, _body: bytes) -> OllamaVersion:
        return OllamaVersion()


_model_decoder: Final = msgspec.json.Decoder(ModelBody)


class ShowConsumer(OllamaConsumer):
    """`POST /api/show`: the description of one model of the fast tier."""

    methods = (b"POST",)
    max_body_bytes = 64 * 1024

    def build_response(self, body: bytes) -> ShowResponse:
        pool_name = self.select_pool(decode_body(_model_decoder, body))
        return ShowResponse(
            model_info={
                "general.architecture": "caret",
                "general.basename": self.plane.router.pools.by_name[pool_name].model,
                "caret.context_length": self.plane.prompt_writers[pool_name].get_budget_tokens(
                    Tier.FAST
                ),
            }
        )


class EmbedConsumer(OllamaConsumer):
    """`POST /api/embed` and `/api/embeddings`: rejected, because no model has embeddings."""

    methods = (b"POST",)
    max_body_bytes = 1024 * 1024

    def build_response(self, body: bytes) -> EmbedResponse:
        self.select_pool(decode_body(_model_decoder, body))  # rejects unknown models first
        message = "this model does not support embeddings"
        raise BadRequest("unsupported_parameter", message, http_status=501)
