"""Retrieval in the background: the files sent for indexing, and the queries for snippets."""

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
_PRIVATE_KEY_START = "MIIE"
_PRIVATE_KEY_BODY = f"{_PRIVATE_KEY_START}owIBAAKCAQEA7bq\n" * 20
PRIVATE_KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{_PRIVATE_KEY_BODY}-----END RSA PRIVATE KEY-----\n"
FILES = (ContextFile(path="b.py", text="other", edited_at=0),)


class Gateway:
    """The part of a gateway that retrieves snippets, without a worker that sends its messages."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.cache, self.queue = SnippetCache(clock), SendQueue(clock)
        self.snippets = BackgroundSnippets(self.cache, self.queue)

    def collect_messages(self, admitted: AdmittedRequest) -> list[OutgoingMessage]:
        """Look for snippets for a request, and return the messages that this queues."""
        self.snippets.find(admitted)
        messages = []
        while (message := self.queue.dequeue()) is not None:
            messages.append(message)
        return messages


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def make_opted_in_request(
    *repositories: str, isolation: Isolation = Isolation.SHARED, **fields: Any
) -> AdmittedRequest:
    """Return a request in the repository `shop`.

    Its tenant allows retrieval in `repositories`, by default in `shop`.
    """
    policy = make_policy(retrieval=repositories or ("shop",), isolation=isolation)
    defaults = {"repository": "shop", "path": "a.py", "prefix": "x = ", "suffix": "\n"}
    return make_admitted(make_principal(policy=policy), **{**defaults, **fields})


def test_a_request_sends_its_files_and_a_query(gateway: Gateway) -> None:
    messages = gateway.collect_messages(make_opted_in_request(files=FILES))

    assert [(message.is_query, message.key.path, message.text) for message in messages] == [
        (True, "a.py", "x = \n"),
        (False, "a.py", "x = \n"),
        (False, "b.py", "other"),
    ]
    # The holder "" is the tenant. In strict isolation, the holder is a user.
    assert {message.scope for message in messages} == {RetrievalScope(holder="", repository="shop")}


def test_the_next_request_sends_nothing_and_gets_the_results(gateway: Gateway) -> None:
    request = make_opted_in_request(files=FILES)
    first_snippets = gateway.snippets.find(request)
    file_key = FileKey(request.principal.namespace, "shop", "a.py")
    gateway.cache.store(file_key, FOUND)
    gateway.collect_messages(request)  # removes the messages of the first request from the queue

    assert first_snippets == ()
    assert gateway.collect_messages(request) == []
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
def test_chats_raw_prompts_and_requests_outside_allowed_repositories_send_nothing(
    gateway: Gateway, fields: dict[str, Any]
) -> None:
    assert gateway.collect_messages(make_opted_in_request("shop", files=FILES, **fields)) == []


def test_nothing_is_sent_without_an_opt_in(gateway: Gateway) -> None:
    request = make_admitted(make_principal(), repository="shop", files=FILES)

    assert gateway.collect_messages(request) == []


def test_cached_results_are_not_used_after_an_opt_out(gateway: Gateway) -> None:
    request = make_opted_in_request()
    gateway.cache.store(FileKey(request.principal.namespace, "shop", "a.py"), FOUND)

    assert gateway.snippets.find(make_opted_in_request("blog")) == ()


def test_indexed_files_belong_to_the_user_in_strict_isolation(gateway: Gateway) -> None:
    messages = gateway.collect_messages(make_opted_in_request(isolation=Isolation.STRICT))

    assert {message.scope.holder for message in messages} == {ADA}
    assert all(ADA in message.key.namespace for message in messages)


def test_files_that_are_too_long_are_not_sent(gateway: Gateway) -> None:
    longest_text = "x" * MAX_FILE_CHARS
    files = (ContextFile("b.py", longest_text, 0), ContextFile("c.py", longest_text + "x", 0))
    request = make_opted_in_request(prefix=longest_text, suffix="y", files=files)

    messages = gateway.collect_messages(request)

    assert [message.key.path for message in messages if not message.is_query] == ["b.py"]


@pytest.mark.parametrize(
    # Numbers of characters before and after the cursor: in the file, and in the query. At most 300
    # characters after the cursor are part of a query.
    ("file_before", "file_after", "query_before", "query_after"),
    [
        (10, 10, 10, 10),
        (5_000, 5_000, MAX_QUERY_CHARS - 300, 300),
        (5_000, 0, MAX_QUERY_CHARS, 0),
        (10, 5_000, 10, 300),
        (0, 0, 0, 0),
    ],
)
def test_a_query_is_the_text_around_the_cursor(
    gateway: Gateway, file_before: int, file_after: int, query_before: int, query_after: int
) -> None:
    request = make_opted_in_request(prefix="b" * file_before, suffix="a" * file_after)

    query = gateway.collect_messages(request)[0]

    assert query.text == "b" * query_before + "a" * query_after


def test_the_imports_of_a_long_file_are_part_of_the_query(gateway: Gateway) -> None:
    imports = ("django", "shop.orders")
    request = make_opted_in_request(prefix="b" * 5_000, suffix="a", imports=imports)

    query = gateway.collect_messages(request)[0]

    assert query.text.startswith("django shop.orders\nb")
    assert query.text.endswith("ba")
    assert len(query.text) == MAX_QUERY_CHARS


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        (PRIVATE_KEY + "b" * (MAX_QUERY_CHARS - 100), "a"),
        (PRIVATE_KEY[:-100], PRIVATE_KEY[-100:]),
        ("b", PRIVATE_KEY),
    ],
    ids=["the query begins within the key", "the cursor splits the key", "after the cursor"],
)
def test_a_query_contains_no_part_of_a_private_key(
    gateway: Gateway, prefix: str, suffix: str
) -> None:
    query = gateway.collect_messages(make_opted_in_request(prefix=prefix, suffix=suffix))[0]

    assert _PRIVATE_KEY_START not in query.text
