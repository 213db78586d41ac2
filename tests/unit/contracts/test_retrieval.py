"""Retrieval's messages are sealed: encrypted and authenticated with a key of their tenant."""

import msgspec
import pytest

from caret.contracts.retrieval import (
    FileUpload,
    Message,
    RetrievalScope,
    RetrievalSealer,
    SnippetMatch,
    SnippetQuery,
    SnippetResult,
)
from caret.contracts.sealed_message import Envelope, UnreadableMessage
from tests.fakes.tenants import ACME, GLOBEX, ROOT_SECRET

SCOPE = RetrievalScope(holder="", repository="shop")  # files of the whole tenant
FILE = FileUpload(scope=SCOPE, path="planted-path.py", text="planted text")
QUERY = SnippetQuery(query_id="1", gateway="ab", scope=SCOPE, path="a.py", text="planted text")
RESULT = SnippetResult(query_id="1", snippets=(SnippetMatch(path="a.py", text="text", score=0.5),))


@pytest.fixture
def sealer() -> RetrievalSealer:
    return RetrievalSealer(ROOT_SECRET)


@pytest.mark.parametrize("message", [FILE, QUERY, RESULT])
def test_a_message_survives_sealing_and_opening(sealer: RetrievalSealer, message: Message) -> None:
    data = sealer.seal(ACME, message)

    assert RetrievalSealer(ROOT_SECRET).open(data, type(message)) == (ACME, message)


def test_a_sealed_message_reveals_only_its_tenant(sealer: RetrievalSealer) -> None:
    data = sealer.seal(ACME, FILE)

    for text in (b"planted", b"shop", b"text", b"path"):
        assert text not in data
    assert ACME.encode() in data


def test_equal_messages_are_sealed_differently(sealer: RetrievalSealer) -> None:
    assert sealer.seal(ACME, FILE) != sealer.seal(ACME, FILE)


def test_a_message_moved_to_another_tenant_does_not_open(sealer: RetrievalSealer) -> None:
    envelope = msgspec.msgpack.decode(sealer.seal(ACME, FILE), type=Envelope)
    moved = msgspec.msgpack.encode(msgspec.structs.replace(envelope, tenant_id=GLOBEX))

    with pytest.raises(UnreadableMessage, match="seal"):
        sealer.open(moved, FileUpload)


def test_a_message_does_not_open_as_another_type(sealer: RetrievalSealer) -> None:
    with pytest.raises(UnreadableMessage, match="seal"):
        sealer.open(sealer.seal(ACME, FILE), SnippetQuery)


def test_a_message_of_another_installation_does_not_open(sealer: RetrievalSealer) -> None:
    with pytest.raises(UnreadableMessage, match="seal"):
        sealer.open(RetrievalSealer(bytes(32)).seal(ACME, FILE), FileUpload)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"\x93\x01\xa1a\xc4\x00",
        msgspec.msgpack.encode(Envelope(2, ACME, b"x" * 40)),
        msgspec.msgpack.encode([1, "\ud800".encode("utf-8", "surrogatepass"), b""]),
        msgspec.msgpack.encode({"version": 1}),
    ],
    ids=[
        "empty",
        "no array",
        "an empty seal",
        "version 2",
        "bytes as the tenant's ID",
        "an object",
    ],
)
def test_malformed_data_is_rejected_without_revealing_it(
    sealer: RetrievalSealer, data: bytes
) -> None:
    with pytest.raises(UnreadableMessage, match=r"^(seal|format|version)$"):
        sealer.open(data, FileUpload)
