"""Secrets are redacted from files and queries before the gateway sends them for retrieval."""

import asyncio

import pytest

from inference.retrieval.redaction import redact_in_slices

KEY = "AKIA" + "QX7RT2MNV4KLPZ3J"


async def test_a_secret_is_replaced_and_the_rest_kept() -> None:
    text = f"def connect():\n    return client('{KEY}')\n"

    redacted = await redact_in_slices("a.py", text)

    assert KEY not in redacted
    assert redacted.startswith("def connect():\n    return client('")
    assert redacted.count("\n") == 2


async def test_a_private_key_is_replaced_completely() -> None:
    body = "\n".join(["MIIEowIBAAKCAQEA7bq3kPzYx0fR"] * 5)
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nx = 1\n"

    redacted = await redact_in_slices("a.py", text)

    assert "MIIEow" not in redacted
    assert redacted.endswith("x = 1\n")


# A slice has 2,000 characters. A short line counts as 100 characters.
@pytest.mark.parametrize(
    ("text", "min_turns"), [("x = 1\n" * 400, 400 / 20), ("password" * 5_000, 40_000 / 2_000)]
)
async def test_other_tasks_run_during_redaction(text: str, min_turns: float) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    await redact_in_slices("a.py", text)
    task.cancel()

    assert turns >= min_turns
