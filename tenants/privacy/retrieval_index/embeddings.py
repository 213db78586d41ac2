"""Embeddings of texts, from our own engine that serves a sentence-embedding model."""

import http.client
import math
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from tenants.models.retrieval_chunk import EMBEDDING_DIMENSIONS

MAX_TEXTS: Final = 32  # per request: under 2 s on one core with the default model
_TIMEOUT_S: Final = 10.0
# A longer response is cut off. It is then malformed JSON, and raises EmbeddingFailed.
_MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
# The engine is our own, so the environment's proxy settings are ignored.
_DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class EmbeddingFailed(Exception):
    """The engine is down or returned no valid embeddings. The message contains no input."""


class Embedder(Protocol):
    @property
    def model(self) -> str:
        """The model's name. Vectors of different models are never compared."""

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector of EMBEDDING_DIMENSIONS for each text, in order.

        Takes up to MAX_TEXTS texts of any length. A text beyond the model's limit is truncated.
        Raises EmbeddingFailed.
        """


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _EmbeddingResponse(msgspec.Struct):
    data: list[_Embedding]


class EmbeddingEngine:
    """A client of vLLM with its pooling runner.

    Another server works, too, if it has OpenAI's /v1/embeddings and vLLM's parameter
    `truncate_prompt_tokens`.
    """

    def __init__(self, url: str, *, model: str, timeout_s: float = _TIMEOUT_S) -> None:
        self._address = f"{url.rstrip('/')}/v1/embeddings"
        self._timeout_s = timeout_s
        self.model = model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []
        # -1: truncate each text to the model's limit.
        response = self._send_request(
            {"model": self.model, "input": list(texts), "truncate_prompt_tokens": -1}
        )
        try:
            entries = msgspec.json.decode(response, type=_EmbeddingResponse).data
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise EmbeddingFailed("the response is malformed") from error
        entries.sort(key=lambda entry: entry.index)
        if [entry.index for entry in entries] != list(range(len(texts))):
            raise EmbeddingFailed("the response has not exactly one vector for each text")
        vectors = [entry.embedding for entry in entries]
        if not all(map(_is_valid_vector, vectors)):
            raise EmbeddingFailed(
                f"a vector has not {EMBEDDING_DIMENSIONS} finite numbers, or all are 0"
            )
        return vectors

    def _send_request(self, body: dict[str, object]) -> bytes:
        request = urllib.request.Request(  # noqa: S310  # the operator's own URL
            self._address,
            data=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"},
        )
        try:
            with _DIRECT.open(request, timeout=self._timeout_s) as response:
                body_bytes: bytes = response.read(_MAX_RESPONSE_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                raise EmbeddingFailed(f"status {error.code}") from None
        except (OSError, http.client.HTTPException) as error:
            raise EmbeddingFailed(type(error).__name__) from None
        return body_bytes


def _is_valid_vector(vector: list[float]) -> bool:
    # A vector of zeros has no direction, so it is similar to nothing.
    return len(vector) == EMBEDDING_DIMENSIONS and all(map(math.isfinite, vector)) and any(vector)
