"""Lookups of Ollama's clients: the models and their capabilities."""

from typing import Final

import msgspec

from caret.contracts.policy import ANY_LANGUAGE, Tier
from inference.consumers.dialects.models_list import ModelsListConsumer
from inference.consumers.dialects.ollama_generate import error_body, read_model_name
from inference.consumers.http.request_bodies import decode
from inference.errors import CompletionError

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
    modified_at: str = "1970-01-01T00:00:00Z"  # unknown
    size: int = 0
    digest: str = ""
    details: Details = Details()


class Tags(msgspec.Struct, frozen=True):
    models: list[OllamaModel]


class OllamaVersion(msgspec.Struct, frozen=True):
    version: str = VERSION


class ShowBody(msgspec.Struct, frozen=True):
    model: str | None = None
    name: str | None = None


class ShowResponse(msgspec.Struct, frozen=True):
    model_info: dict[str, str | int]
    modelfile: str = ""
    parameters: str = ""
    template: str = _TEMPLATE
    details: Details = Details()
    capabilities: tuple[str, ...] = ("completion", "insert")
    modified_at: str = "1970-01-01T00:00:00Z"


class OllamaConsumer(ModelsListConsumer):
    def encode_error(self, error: CompletionError) -> bytes:
        return error_body(error)


class TagsConsumer(OllamaConsumer):
    """`GET /api/tags`"""

    def build_response(self, _body: bytes) -> Tags:
        return Tags([OllamaModel(name, name) for name in self.list_models()])


class VersionConsumer(OllamaConsumer):
    """`GET /api/version`"""

    def build_response(self, _body: bytes) -> OllamaVersion:
        return OllamaVersion()


_show_decoder: Final = msgspec.json.Decoder(ShowBody)


class ShowConsumer(OllamaConsumer):
    """`POST /api/show`."""

    methods = (b"POST",)
    max_body_bytes = 64 * 1024

    def build_response(self, body: bytes) -> ShowResponse:
        request = decode(_show_decoder, body)
        snapshot, selector = self.principal.snapshot, self.plane.pool_selector
        name = selector.select(
            snapshot,
            Tier.FAST,
            language=ANY_LANGUAGE,
            model=read_model_name(request.model or request.name),
        )
        return ShowResponse(
            model_info={
                "general.architecture": "caret",
                "general.basename": self.plane.router.pools.by_name[name].model,
                "caret.context_length": self.plane.prompt_writers[name].get_budget_tokens(
                    Tier.FAST
                ),
            }
        )
