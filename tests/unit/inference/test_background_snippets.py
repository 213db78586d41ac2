"""Retrieval beside completions: the files sent for indexing, and the queries for snippets."""

from typing import Any

import pytest

from caret.contracts.policy import Isolation
from caret.contracts.retrieval import MAX_FILE_CHARS, MAX_QUERY_CHARS, RetrievalScope
from inference.completion.incoming_request import ChatMessage, ContextFile
from inference.completion.request import AdmittedRequest
from inference.completion.snippet import Snippet
from inference.retrieval.background_snippets import BackgroundSnippets
from inference.retrieval.send_queue import OutgoingMessage, SendQueue
from inference.retrieval.snippet_cache import FileKey, SnippetCache
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_admitted
from tests.fakes.tenants import ADA, make_policy, make_principal

FOUND = (Snippet("b.py", "found", 0.5),)
_BODY = "MIIEowIBAAKCAQEA7bq\n" * 20
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{_BODY}-----END RSA PRIVATE KEY-----\n"
FILES = (ContextFile(path="b.py", text="other", edited_at=0),)


class Gateway:
    def __init__(self) -> None:
        clock = FakeClock()
        self.cache, self.queue = SnippetCache(clock), SendQueue(clock)
        self.snippets = BackgroundSnippets(self.cache, self.queue)

    def messages(self, admitted: AdmittedRequest) -> list[OutgoingMessage]:
        """Return the messages that a request causes."""
        self.snippets.find(admitted)
        messages = []
        while (message := self.queue.dequeue()) is not None:
            messages.append(message)
        return messages


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def admitted(
    *globs: str, isolation: Isolation = Isolation.SHARED, **fields: Any
) -> AdmittedRequest:
    policy = make_policy(retrieval=globs or ("shop",), isolation=isolation)
    defaults = {"repository": "shop", "path": "a.py", "prefix": "x = ", "suffix": "\n"}
    return make_admitted(make_principal(policy=policy), **{**defaults, **fields})


def test_a_request_sends_its_files_and_a_query(gateway: Gateway) -> None:
    messages = gateway.messages(admitted(files=FILES))

    assert [(message.is_query, message.key.path, message.text) for message in messages] == [
        (True, "a.py", "x = \n"),
        (False, "a.py", "x = \n"),
        (False, "b.py", "other"),
    ]
    assert {message.scope for message in messages} == {RetrievalScope(holder="", repository="shop")}


def test_the_next_request_sends_nothing_and_gets_the_results(gateway: Gateway) -> None:
    request = admitted(files=FILES)
    first = gateway.snippets.find(request)
    key = FileKey(request.principal.namespace, "shop", "a.py")
    gateway.cache.store(key, FOUND)
    gateway.messages(request)

    assert first == ()
    assert gateway.messages(request) == []
    assert gateway.snippets.find(request) == FOUND


@pytest.mark.parametrize(
    "fields",
    [
        {"repository": "blog"},
        {"repository": ""},
        {"path": ""},
        {"is_raw": True},
        {"messages": (ChatMessage("user", "hello"),)},
    ],
)
def test_chats_raw_prompts_and_files_outside_allowed_repositories_send_nothing(
    gateway: Gateway, fields: dict[str, Any]
) -> None:
    assert gateway.messages(admitted("shop", files=FILES, **fields)) == []


def test_without_an_opt_in_nothing_is_sent(gateway: Gateway) -> None:
    request = make_admitted(make_principal(), repository="shop", files=FILES)

    assert gateway.messages(request) == []


def test_cached_results_are_not_used_after_an_opt_out(gateway: Gateway) -> None:
    request = admitted()
    gateway.cache.store(FileKey(request.principal.namespace, "shop", "a.py"), FOUND)

    assert gateway.snippets.find(admitted("blog")) == ()


def test_files_belong_to_the_user_in_strict_isolation(gateway: Gateway) -> None:
    messages = gateway.messages(admitted(isolation=Isolation.STRICT))

    assert {message.scope.holder for message in messages} == {ADA}
    assert all(ADA in message.key.namespace for message in messages)


def test_files_that_are_too_long_are_not_sent(gateway: Gateway) -> None:
    long = "x" * MAX_FILE_CHARS
    files = (ContextFile("b.py", long, 0), ContextFile("c.py", long + "x", 0))

    messages = gateway.messages(admitted(prefix=long, suffix="y", files=files))

    assert [message.key.path for message in messages if not message.is_query] == ["b.py"]


@pytest.mark.parametrize(
    ("num_before", "num_after", "before", "after"),
    # At most 300 characters after the cursor are part of a query.
    [
        (10, 10, 10, 10),
        (5_000, 5_000, MAX_QUERY_CHARS - 300, 300),
        (5_000, 0, MAX_QUERY_CHARS, 0),
        (10, 5_000, 10, 300),
        (0, 0, 0, 0),
    ],
)
def test_a_query_is_the_text_around_the_cursor(
    gateway: Gateway, num_before: int, num_after: int, before: int, after: int
) -> None:
    request = admitted(prefix="b" * num_before, suffix="a" * num_after)

    query = gateway.messages(request)[0]

    assert query.text == "b" * before + "a" * after


def test_the_imports_of_a_long_file_are_part_of_the_query(gateway: Gateway) -> None:
    request = admitted(prefix="b" * 5_000, suffix="a", imports=("django", "shop.orders"))

    query = gateway.messages(request)[0]

    assert query.text.startswith("django shop.orders\nb")
    assert query.text.endswith("ba")
    assert len(query.text) == MAX_QUERY_CHARS


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [(KEY + "b" * (MAX_QUERY_CHARS - 100), "a"), (KEY[:-100], KEY[-100:]), ("b", KEY)],
    ids=["the query begins within the key", "the cursor splits the key", "after the cursor"],
)
def test_a_query_contains_no_part_of_a_private_key(
    gateway: Gateway, prefix: str, suffix: str
) -> None:
    query = gateway.messages(admitted(prefix=prefix, suffix=suffix))[0]

    assert "MIIE" not in query.text
