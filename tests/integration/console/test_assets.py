"""Static files are cached forever under versioned paths, and compressed if clients accept gzip."""

import gzip
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console.assets.console_files import asset_url
from console.assets.operator_files import url_of
from console.assets.static_file import build_static_file, version_of
from console.web.static_files import StaticFiles, list_static_files

if TYPE_CHECKING:
    from pytest_django import Settings


class RecordedResponse:
    """An ASGI `send` function that records the response."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.content = b""
        self.num_parts = 0

    async def __call__(self, event: Any) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = {name.decode(): value.decode() for name, value in event["headers"]}
        else:
            self.content += event["body"]
            self.num_parts += 1


async def fetch(path: str, *, accepted: str = "", method: str = "GET") -> RecordedResponse:
    """Request the path. `accepted` is the header Accept-Encoding; without one if it is empty."""

    # The application to which other requests are passed on.
    async def not_found(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 404, "headers": []})

    answer = RecordedResponse()
    headers = [(b"accept-encoding", accepted.encode())] if accepted else []
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    await StaticFiles(not_found, list_static_files)(scope, None, answer)  # type: ignore[arg-type]  # reads no events
    return answer


@pytest.mark.parametrize("accepted", ["gzip", "br, gzip", "GZIP;q=0.5", "gzip, deflate, br, zstd"])
async def test_a_file_is_compressed_for_clients_that_accept_gzip(accepted: str) -> None:
    plain = await fetch(asset_url("console.css"))

    compressed = await fetch(asset_url("console.css"), accepted=accepted)

    assert compressed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(compressed.content) == plain.content
    assert len(compressed.content) < len(plain.content) / 2


@pytest.mark.parametrize("accepted", ["", "identity", "br", "gzip;q=0", "gzip; q=0.0, br", "xgzip"])
async def test_a_file_is_plain_for_all_other_clients(accepted: str) -> None:
    answer = await fetch(asset_url("console.css"), accepted=accepted)

    assert "content-encoding" not in answer.headers
    assert b":root" in answer.content


async def test_responses_vary_by_accepted_encoding() -> None:
    for accepted in ("gzip", "identity"):
        answer = await fetch(asset_url("console.css"), accepted=accepted)

        assert answer.headers["vary"] == "Accept-Encoding"


async def test_a_file_is_cached_forever_under_the_digest_of_its_content() -> None:
    answer = await fetch(asset_url("console.css"))

    assert answer.status == 200
    # The path contains the first 16 hexadecimal digits of the digest.
    assert hashlib.sha256(answer.content).hexdigest()[:16] in asset_url("console.css")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_operator_admins_files_are_compressed_and_cached() -> None:
    answer = await fetch(url_of("operators.css"), accepted="gzip")

    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]


async def test_a_large_file_is_sent_in_parts() -> None:
    answer = await fetch(asset_url("playground.js"))

    assert answer.num_parts > 10
    assert len(answer.content) == int(answer.headers["content-length"])


async def test_head_gets_only_the_headers() -> None:
    answer = await fetch(asset_url("console.css"), method="HEAD")

    assert int(answer.headers["content-length"]) > 0
    assert answer.content == b""


@pytest.mark.parametrize(
    "path", ["/assets/0000/console.css", "/assets/x/../../apps.py", "/assets/x/nothing"]
)
async def test_unknown_paths_are_passed_on_and_not_found(path: str) -> None:
    assert (await fetch(path)).status == 404
    assert Client().get(path).status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_methods_that_change_something_are_passed_on(method: str) -> None:
    assert (await fetch(asset_url("console.css"), method=method)).status == 404


def test_the_url_of_a_file_that_does_not_exist_raises_an_error() -> None:
    with pytest.raises(KeyError):
        asset_url("missing.css")


def test_a_file_that_would_not_be_smaller_is_not_compressed() -> None:
    assert build_static_file("dot.woff2", b"wOF2").compressed is None


def test_in_development_saving_a_file_changes_the_version_of_its_folder(
    settings: "Settings", tmp_path: Path
) -> None:
    settings.RELOAD = True
    # The clock of the file system is coarse, so a new folder could get the same time as its file.
    os.utime(tmp_path, (1_000_000_000, 1_000_000_000))
    before = version_of(tmp_path)

    (tmp_path / "console.css").write_text(":root {}")

    assert version_of(tmp_path) > before


def test_in_production_saving_a_file_does_not_change_the_version(tmp_path: Path) -> None:
    before = version_of(tmp_path)

    (tmp_path / "console.css").write_text(":root {}")

    assert version_of(tmp_path) == before
