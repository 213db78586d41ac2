"""The script of the playground, the page on which a user tries completions in the browser.

The script has tests of its own, which run in Node. The other tests compare it with its sources and
with the gateway.
"""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from caret.contracts.language_ids import LANGUAGES as KNOWN_LANGUAGES
from caret.contracts.usage import FinishReason
from console.texts.playground_texts import COLUMNS, SEGMENTS, TEXTS
from console.views.playground import LANGUAGES, stream_url
from inference.completion.segment import SegmentKind
from inference.filtering.filter_reason import FilterReason
from inference.gateway.protocol.frames import CompletionMeta

REPOSITORY: Final = Path(__file__).parents[3]
SOURCES: Final = REPOSITORY / "console" / "playground"
BUNDLE: Final = REPOSITORY / "console" / "static" / "playground.js"
# Error codes: in the gateway's code, where an error is raised, and in the table of protocol.md.
_RAISED: Final = re.compile(
    r"(?:BadRequest|InvalidFrame|TooManyRequests|CompletionError|EngineError|ForbiddenRequest"
    r"|UnauthenticatedRequest)"
    r"\(\s*\"([a-z_]+)\""
)
_DOCUMENTED: Final = re.compile(r"`([a-z_]+)`")


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_tests_of_the_script_pass() -> None:
    tests = sorted(map(str, (Path(__file__).parent / "playground").glob("*.test.mjs")))

    result = subprocess.run(
        ["node", "--test", *tests], capture_output=True, text=True, timeout=60, check=False
    )

    assert tests
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_bundle_matches_the_sources() -> None:
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in (".js", ".mjs", ".json"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()

    beginning = BUNDLE.read_text(encoding="utf-8")[:300]  # a comment with the digest
    assert f"sources: {digest} " in beginning, "run platform/scripts/build_playground"


def test_the_bundle_evaluates_no_code_and_names_no_source_map() -> None:
    text = BUNDLE.read_text(encoding="utf-8")

    assert not re.search(r"\beval\(|new Function\b", text)
    assert "sourceMappingURL" not in text


def test_every_finish_reason_and_filter_reason_has_a_text() -> None:
    assert set(TEXTS["finish"]) == set(FinishReason)
    assert set(TEXTS["cut"]) == set(FilterReason)


def test_every_segment_kind_has_a_name_and_every_column_is_a_field_of_completion_meta() -> None:
    assert set(SEGMENTS) == set(SegmentKind)
    assert set(COLUMNS) - {"result"} <= set(CompletionMeta.__struct_fields__)


def test_every_error_code_of_the_gateway_has_a_text() -> None:
    raised = {
        code
        for path in (REPOSITORY / "inference").rglob("*.py")
        for code in _RAISED.findall(path.read_text(encoding="utf-8"))
    }
    text = (REPOSITORY / "platform" / "docs" / "protocol.md").read_text(encoding="utf-8")
    table = text.partition("| code | meaning | HTTP |")[2].partition("\n\n")[0]
    documented = {
        code
        for line in table.split("\n")
        if line.startswith("| `")
        for code in _DOCUMENTED.findall(line.split("|")[1])
    }

    # Both patterns still find codes: there are more than 20 of each.
    assert len(raised) > 20
    assert len(documented) > 20
    assert raised | documented <= set(TEXTS["error"])


def test_the_gateway_knows_the_languages_of_the_playground() -> None:
    assert set(LANGUAGES) <= set(KNOWN_LANGUAGES)


@pytest.mark.parametrize(
    ("gateway", "stream"),
    [
        ("http://127.0.0.1:8401", "ws://127.0.0.1:8401/v1/stream"),
        ("https://caret.example.com/", "wss://caret.example.com/v1/stream"),
        ("https://example.com/caret", "wss://example.com/caret/v1/stream"),
    ],
)
def test_the_stream_url_follows_the_gateway_url(gateway: str, stream: str) -> None:
    assert stream_url(gateway) == stream
