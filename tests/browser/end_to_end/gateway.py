"""The installation's gateway, called as an editor does."""

from typing import Any, Final

import httpx

from tests.fixtures.companies import Company, make_key
from tests.stack.running import Stack
from tests.stack.waiting import wait_until

KNOWN_S: Final = 10.0  # until gateways know a new object, on two busy cores
IN_FORCE_S: Final = 1.0  # the console's promise for changes
_PATIENCE_S: Final = 60.0
_PROMPT: Final = {"prompt": "import ", "max_tokens": 4}


def complete(stack: Stack, key: str, *, file: str = "", **body: Any) -> httpx.Response:
    """Request a completion; `file` is its path in the repository `payments`."""
    headers = {"Authorization": f"Bearer {key}"}
    if file:
        headers |= {"X-Caret-Path": file, "X-Caret-Repository": "payments"}
    with httpx.Client(base_url=stack.gateway_url, timeout=_PATIENCE_S) as client:
        return client.post("/v1/completions", headers=headers, json=_PROMPT | body)


def chat(stack: Stack, key: str) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": "import"}], "max_tokens": 4}
    with httpx.Client(base_url=stack.gateway_url, timeout=_PATIENCE_S) as client:
        return client.post(
            "/v1/chat/completions", headers={"Authorization": f"Bearer {key}"}, json=body
        )


def num_generated(answer: httpx.Response) -> int:
    """Return the number of generated tokens; editors show nothing for 0, an empty completion."""
    assert answer.is_success, answer.text
    return int(answer.json()["usage"]["completion_tokens"])


def refusal(answer: httpx.Response) -> str:
    """Return the error code, or "" for a success."""
    return "" if answer.is_success else str(answer.json()["error"]["code"])


def known_key(stack: Stack, company: Company) -> str:
    """Return the developer's key once the gateway accepts it."""
    key = make_key(company, company.developer).text
    wait_until(lambda: complete(stack, key).is_success, timeout_s=KNOWN_S)
    return key
