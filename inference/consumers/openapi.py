"""The OpenAPI description of the HTTP protocols, made from the structs of requests and responses.

After a change of a struct, update the document:

    python -m inference.consumers.openapi > platform/docs/openapi.json
"""

import re
import sys
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from inference.consumers.dialects import (
    llama_cpp_infill,
    mistral_fim,
    models_list,
    ollama_chat,
    ollama_generate,
    ollama_models,
    openai_chat,
    openai_completions,
    tabby_completions,
    tabby_events,
)
from inference.consumers.http.openai_schemas import ErrorResponse

_SSE: Final = "text/event-stream"
_NDJSON: Final = "application/x-ndjson"
_ERRORS: Final = {  # by HTTP status
    "400": "The body is malformed.",
    "401": "The API key is missing, invalid, revoked or expired, or its tenant is not active.",
    "402": "A budget is used up. Only chats get this status.",
    "403": "The tenant's policy, trial or region does not allow the request.",
    "404": "The model does not exist.",
    "405": "The method is not allowed; the Allow header names the allowed ones.",
    "408": "The client sent the body or read the response too slowly.",
    "413": "The body or one of its fields is too large.",
    "429": "Too many requests, or a limit is reached. Retry-After may say when to retry.",
    "501": "The endpoint is not supported.",
    "502": "The engine failed.",
    "503": "No engine is available, or the gateway is full or cannot verify keys.",
    "504": "The completion took too long.",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    path: str
    method: str
    summary: str
    responses: tuple[type, ...]  # alternatives, if not streamed
    bodies: tuple[type, ...] = ()  # alternatives; empty: no body
    error: type = ErrorResponse
    stream: str | None = None  # media type of a streamed response; None: never streamed
    has_field_selection: bool = False  # the client may request only some fields of the response


ENDPOINTS: Final = (
    *(
        Endpoint(
            path,
            "post",
            "Complete a text (OpenAI, Tabby).",
            (openai_completions.Completion, tabby_completions.TabbyCompletion),
            (openai_completions.CompletionBody, tabby_completions.TabbyBody),
            stream=_SSE,
        )
        for path in ("/v1/completions", "/completions", "/beta/completions")
    ),
    *(
        Endpoint(
            path,
            "post",
            "Answer a chat (OpenAI).",
            (openai_chat.ChatCompletion,),
            (openai_chat.ChatBody,),
            stream=_SSE,
        )
        for path in ("/v1/chat/completions", "/chat/completions")
    ),
    Endpoint(
        "/v1/fim/completions",
        "post",
        "Complete a text between prefix and suffix (Mistral).",
        (mistral_fim.FimCompletion,),
        (mistral_fim.FimBody,),
        error=mistral_fim.FimError,
        stream=_SSE,
    ),
    Endpoint(
        "/infill",
        "post",
        "Complete a text between prefix and suffix (llama.cpp).",
        (llama_cpp_infill.InfillResponse,),
        (llama_cpp_infill.InfillBody,),
        error=llama_cpp_infill.InfillError,
        stream=_SSE,
        has_field_selection=True,
    ),
    Endpoint(
        "/api/generate",
        "post",
        "Complete a text (Ollama).",
        (ollama_generate.GenerateFinal,),
        (ollama_generate.GenerateBody,),
        error=ollama_generate.OllamaError,
        stream=_NDJSON,
    ),
    Endpoint(
        "/api/chat",
        "post",
        "Answer a chat (Ollama).",
        (ollama_chat.OllamaChatFinal,),
        (ollama_chat.OllamaChatBody,),
        error=ollama_generate.OllamaError,
        stream=_NDJSON,
    ),
    Endpoint(
        "/v1/models",
        "get",
        "List the models that the key can use (OpenAI, Mistral).",
        (models_list.Models,),
    ),
    Endpoint(
        models_list.MODEL_ROUTE,
        "get",
        "Describe a model (OpenAI).",
        (models_list.ModelInfo,),
    ),
    Endpoint("/v1/health", "get", "Report the health (Tabby).", (tabby_events.TabbyHealth,)),
    Endpoint("/v1/health", "post", "Report the health (Tabby).", (tabby_events.TabbyHealth,)),
    Endpoint(
        "/v1/events",
        "post",
        "Report the outcome of a suggestion (Tabby).",
        (tabby_events.EventAck,),
        (tabby_events.EventBody,),
    ),
    Endpoint("/v1beta/server_setting", "get", "Settings (Tabby).", (tabby_events.ServerSetting,)),
    Endpoint(
        "/api/show",
        "post",
        "Describe the model (Ollama).",
        (ollama_models.ShowResponse,),
        (ollama_models.ModelBody,),
        error=ollama_generate.OllamaError,
    ),
    *(
        Endpoint(
            path,
            "post",
            "Not supported (Ollama).",
            (ollama_models.EmbedResponse,),
            (ollama_models.ModelBody,),
            error=ollama_generate.OllamaError,
        )
        for path in ("/api/embed", "/api/embeddings")
    ),
    *(
        Endpoint(path, "get", summary, (response,), error=ollama_generate.OllamaError)
        for path, summary, response in (
            ("/api/ps", "List the loaded models (Ollama).", ollama_models.RunningModels),
            ("/api/tags", "List the models (Ollama).", ollama_models.Tags),
            ("/api/version", "Get the version (Ollama).", ollama_models.OllamaVersion),
        )
    ),
)


def build_openapi() -> dict[str, Any]:
    types = {
        kind
        for endpoint in ENDPOINTS
        for kind in (*endpoint.responses, endpoint.error, *endpoint.bodies)
    }
    type_list = sorted(types, key=str)  # a set has another order in each process
    schemas, components = msgspec.json.schema_components(
        type_list, ref_template="#/components/schemas/{name}"
    )
    schema_of = dict(zip(type_list, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method] = _describe_operation(
            endpoint, schema_of
        )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Caret's gateway", "version": "1"},
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "api-key"},
            },
        },
    }


def _describe_operation(endpoint: Endpoint, schema_of: dict[type, Any]) -> dict[str, Any]:
    response = _any_of(endpoint.responses, schema_of)
    if endpoint.has_field_selection:
        response = {"anyOf": [response, {"type": "object"}]}
    content = {"application/json": {"schema": response}}
    if endpoint.stream is not None:
        # Each event is a JSON object with fields like those of the full response.
        content[endpoint.stream] = {"schema": {}}
    error = {"application/json": {"schema": schema_of[endpoint.error]}}
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "responses": {
            "200": {"description": "The response.", "content": content},
            **{status: {"description": text, "content": error} for status, text in _ERRORS.items()},
        },
    }
    if names := re.findall(r"{(\w+)}", endpoint.path):  # such as `/v1/models/{name}`
        operation["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
    if endpoint.bodies:
        content = {"application/json": {"schema": _any_of(endpoint.bodies, schema_of)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _any_of(kinds: tuple[type, ...], schema_of: dict[type, Any]) -> dict[str, Any]:
    schemas = [schema_of[kind] for kind in kinds]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def render_openapi() -> str:
    text = msgspec.json.format(msgspec.json.encode(build_openapi(), order="sorted"), indent=2)
    return text.decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(render_openapi())
