"""An embedding engine that serves /v1/embeddings over HTTP.

Its vectors count words, so texts with common words are similar.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tenants.models.retrieval_chunk import EMBEDDING_DIMENSIONS
from tests.fakes.server_thread import serving_in_thread

MODEL = "words"


def embedding_of(text: str) -> list[float]:
    counts = [0.0] * EMBEDDING_DIMENSIONS
    for word in re.findall(r"[a-z]+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
        counts[int.from_bytes(digest) % EMBEDDING_DIMENSIONS] += 1.0
    if not any(counts):  # no word: a vector of zeros has no direction
        return [1.0] * EMBEDDING_DIMENSIONS
    length = math.sqrt(sum(count * count for count in counts))
    return [count / length for count in counts]


@dataclass(slots=True)
class FakeEmbeddings:
    url: str = ""
    model: str = MODEL
    texts: list[str] = field(default_factory=list)  # all texts that it received
    status: int = 200
    raw_response: bytes | None = None  # sent instead of the vectors

    def reply(self, body: dict[str, Any]) -> bytes:
        assert body["model"] == self.model
        assert body["truncate_prompt_tokens"] == -1  # vLLM: truncate to the model's maximum
        self.texts += body["input"]
        if self.raw_response is not None:
            return self.raw_response
        vectors = [embedding_of(text) for text in body["input"]]
        # In reverse order: the protocol allows any order.
        data = [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)][::-1]
        return json.dumps({"data": data}).encode()


@contextmanager
def serving_embeddings() -> Iterator[FakeEmbeddings]:
    fake = FakeEmbeddings()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            response = fake.reply(json.loads(body)) if self.path == "/v1/embeddings" else b""
            self.send_response(fake.status)
            self.send_header("Content-Length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    with serving_in_thread(server):
        yield fake
