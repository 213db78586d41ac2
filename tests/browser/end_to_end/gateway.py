"""The installation's gateway, called as an editor does."""

from typing import Any, Final

import httpx

from tests.fixtures.companies import Company, Person, make_key
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

# Until gateways know a change of keys or policies: less than a second, but longer on busy cores.
MAX_SYNC_S: Final = 60.0
_TIMEOUT_S: Final = 60.0
_PROMPT: Final = {"prompt": "import ", "max_tokens": 4}


def complete(stack: Stack, key: str, *, file: str = "", **body: Any) -> httpx.Response:
    """Request a completion; `file` is its path in the repository `payments`."""
    headers = {"Authorization": f"Bearer {key}"}
    if file:
        headers |= {"X-Caret-Path": file, "X-Caret-Repository": "payments"}
    with httpx.Client(base_url=stack.gateway_url, timeout=_TIMEOUT_S) as client:
        return client.post("/v1/completions", headers=headers, json=_PROMPT | body)


def request_chat(stack: Stack, key: str) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "import"}], "max_tokens": 4}
    with httpx.Client(base_url=stack.gateway_url, timeout=_TIMEOUT_S) as client:
        return client.post(
            "/v1/chat/completions", headers={"Authorization": f"Bearer {key}"}, json=body
        )


def num_generated_tokens(response: httpx.Response) -> int:
    """Return the number of generated tokens: 0 for an empty completion, which no editor shows."""
    assert response.is_success, response.text
    return int(response.json()["usage"]["completion_tokens"])


def error_code_of(response: httpx.Response) -> str:
    """Return the error code, or "" for a success."""
    return "" if response.is_success else str(response.json()["error"]["code"])


def make_known_key(stack: Stack, company: Company, owner: Person | None = None) -> str:
    """Create a key and return it once the gateway accepts it. `owner` None: the developer."""
    key = make_key(company, owner or company.developer).text
    wait_until(lambda: complete(stack, key).is_success, timeout_s=MAX_SYNC_S)
    return key
