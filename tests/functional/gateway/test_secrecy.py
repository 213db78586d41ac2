"""Nothing of a customer's code is kept, nor a key: in no log, no record, no file of any server.

All of Caret runs: gateway, engine, worker, console, Postgres, Valkey. Strings that occur nowhere
else are planted wherever a client can put one, in good requests and in bad ones; afterwards every
file below the home is searched, the databases' own among them, and every key of Redis.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
import redis
from websockets.exceptions import ConnectionClosed, InvalidStatus

from caret.client.stream import GatewayRefused, Stream, open_stream
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenancy import tenant
from tenants.keys.operations import CreatedKey
from tenants.members.permissions import Role
from tenants.models import UsageRecord
from tests.cast import Company, make_company, make_key
from tests.functional.gateway.company import in_thread
from tests.functional.gateway.site import Frame, dial, until
from tests.stack.running import Stack
from tests.stack.services import Services

pytestmark = pytest.mark.engine
_NUM_RECORDS = 13  # of the good requests below


class Plants:
    """Strings that occur nowhere else, and where each was put."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def new(self, place: str) -> str:
        text = f"Planted{secrets.token_hex(12)}"
        self.places[text] = place
        return text

    def frame(self, identifier: str, kind: str = "") -> Frame:
        """A `complete` that holds one in every field that takes one."""
        return {
            "type": "complete",
            "id": identifier,
            "mode": "fim",
            "path": f"{self.new(f'path{kind}')}.py",
            "prefix": f"class {self.new(f'prefix{kind}')}:\n    def run(self):\n        self.",
            "suffix": f"\n\n    def {self.new(f'suffix{kind}')}(self):\n        pass\n",
            "files": [
                {"path": self.new(f"file's path{kind}"), "text": self.new(f"file's text{kind}")}
            ],
            "repository": {
                "name": self.new(f"repository{kind}"),
                "framework": self.new(f"framework{kind}"),
                "imports": [self.new(f"import{kind}")],
            },
            "max_tokens": 8,
            "traceparent": self.new(f"traceparent{kind}"),
            self.new(f"unknown field{kind}"): self.new(f"value of an unknown field{kind}"),
        }

    def opened(self) -> Frame:
        """A file that an editor has opened."""
        return {
            "type": "open",
            "path": f"{self.new('path of an opened file')}.py",
            "text": f"# {self.new('an opened file')}\n" * 80,  # as much as is worth warming up
            "files": [
                {"path": self.new("path beside it"), "text": f"{self.new('text beside it')} = 1\n"}
            ],
            "repository": {"name": self.new("repository of an opened file")},
        }

    def code(self, place: str) -> str:
        return f"def {self.new(place)}(self):\n    return "

    def dialects(self) -> list[tuple[str, dict[str, Any]]]:
        """Of each protocol but OpenAI's completions a path and a body that is answered."""
        segments = {
            "prefix": self.code("prefix of Tabby"),
            "suffix": f"\n{self.new('suffix of Tabby')}\n",
            "filepath": f"{self.new('path of Tabby')}.py",
            "git_url": f"git@example.com:acme/{self.new('repository of Tabby')}.git",
            "declarations": [
                {"filepath": self.new("declared in"), "body": self.code("declaration")}
            ],
        }
        infill = {
            "input_prefix": f"# {self.new('input_prefix')}\n",
            "input_suffix": f"\n# {self.new('input_suffix')}\n",
            "prompt": f"{self.new('line of the cursor')} = ",
            "input_extra": [
                {"filename": self.new("extra's name"), "text": self.code("extra's text")}
            ],
            "n_predict": 8,
        }
        chat = {
            "messages": [
                {"role": "system", "content": self.new("system's message")},
                {"role": "user", "content": f"What does {self.new('question')} do?"},
            ],
            "max_tokens": 8,
        }
        mistral = {"prompt": self.code("FIM"), "suffix": f"\n{self.new('suffix of FIM')}\n"}
        ollama = {"prompt": self.code("Ollama"), "suffix": f"\n{self.new('suffix of Ollama')}\n"}
        return [
            ("/v1/completions", {"language": "python", "segments": segments}),
            ("/infill", infill),
            ("/infill", {**infill, "prompt": self.new("prompt of a warm-up"), "n_predict": 0}),
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", {**chat, "stream": True}),
            ("/v1/fim/completions", {**mistral, "max_tokens": 8}),
            ("/api/generate", {**ollama, "options": {"num_predict": 8}}),
            ("/api/generate", {**ollama, "stream": False, "options": {"num_predict": 8}}),
        ]

    def body(self, kind: str, **more: Any) -> dict[str, Any]:
        return {
            "model": self.new(f"model{kind}"),
            "prompt": f"x = {self.new(f'prompt{kind}')}\ny = ",
            "stop": [self.new(f"stop{kind}")],
            "user": self.new(f"user{kind}"),
            "max_tokens": 8,
            **more,
        }


@pytest.mark.usefixtures("database")
async def test_nothing_of_a_customers_code_and_no_key_is_kept(
    stack: Stack, services: Services
) -> None:
    company, key = await in_thread(_new_customer)
    plants = Plants()
    plants.places[key.text] = "key"
    assert await until(lambda: _is_known(stack, key.text)), "the gateway never heard of the key"
    await _ask_well(stack, key.text, plants)
    await _ask_badly(stack, key.text, plants)

    async def is_ingested() -> bool:
        return await in_thread(lambda: _num_rows(company.tenant_id)) >= _NUM_RECORDS

    assert await until(is_ingested, patience_s=20.0), "the usage was not ingested"

    # What is known to be there is found, so that finding nothing means something.
    haystack = Haystack(services)
    assert haystack.holders(key.key.lookup_id) >= {"postgres", "valkey", "Redis"}
    kept = {place: haystack.holders(text) for text, place in plants.places.items()}
    assert {place: holders for place, holders in kept.items() if holders} == {}


async def _is_known(stack: Stack, key: str) -> bool:
    try:
        async with open_stream(stack.gateway_url, key):
            return True
    except GatewayRefused:
        return False


async def _ask_well(stack: Stack, key: str, plants: Plants) -> None:
    async with open_stream(stack.gateway_url, key) as stream:
        await stream.send(plants.opened())
        await stream.send(plants.frame("whole"))
        await _end(stream)
        await stream.send(plants.frame("cancelled", " of a cancelled one"))
        await stream.send({"type": "cancel", "id": "cancelled"})
        await _end(stream)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(stack.gateway_url, headers=headers) as session:
        for body in (
            plants.body(" of a raw one"),
            plants.body(" of a streamed one", stream=True),
            plants.body(" of one with a suffix", suffix=f"\n{plants.new('suffix of HTTP')}\n"),
            plants.body(" of one with four stops", stop=[plants.new("stops")] * 4),
        ):
            async with session.post("/v1/completions", json=body) as response:
                assert response.status == 200
                await response.read()
        for path, body in plants.dialects():
            located = {
                "X-Caret-Path": f"{plants.new(f'path header of {path}')}.py",
                "X-Caret-Repository": plants.new(f"repository header of {path}"),
                "traceparent": f"00-{plants.new(f'traceparent of {path}')}",
                "User-Agent": plants.new(f"user agent of {path}"),
            }
            async with session.post(path, json=body, headers=located) as response:
                assert response.status == 200, (path, await response.text())
                await response.read()


async def _ask_badly(stack: Stack, key: str, plants: Plants) -> None:
    async with open_stream(stack.gateway_url, key) as stream:
        broken = plants.new("broken frame")
        for frame in (
            {**plants.frame("1", " of a bad mode"), "mode": plants.new("mode")},
            {**plants.frame("2", " of a bad language"), "language": plants.new("language")},
            {**plants.frame("3", " of bad tokens"), "max_tokens": plants.new("max_tokens")},
            {**plants.frame("4", " of a bad type"), "type": plants.new("type")},
            {**plants.frame("5", " of a long path"), "path": plants.new("long path") * 60},
            {"type": "cancel", "id": plants.new("id of a cancel") * 3},
            [broken],
        ):
            await stream.send(cast(Frame, frame))
            assert (await stream.receive())["type"] == "error"
    await _open_badly(stack, key, plants)
    async with aiohttp.ClientSession(stack.gateway_url) as session:
        good = {"Authorization": f"Bearer {key}"}
        query = f"?{plants.new('query')}={plants.new('query value')}"
        for path, headers, data in (
            ("/v1/completions", good, f'{{"prompt": "{plants.new("half a body")}'),
            ("/v1/completions", good, json.dumps({"prompt": 1, "x": plants.new("bad body")})),
            (f"/v1/completions{query}", good, plants.new("no JSON")),
            (f"/{plants.new('address')}", good, plants.new("body at no address")),
            (f"/v1/completions?key={key}", {}, plants.new("body without a key")),
            ("/v1/completions", {"Authorization": f"Bearer {plants.new('bad key')}"}, ""),
            ("/v1/completions", {"Authorization": plants.new("bad authorization")}, ""),
            *_bad_dialects(good, plants),
        ):
            async with session.post(path, headers=headers, data=data) as response:
                assert response.status in (400, 401, 404, 413)


def _bad_dialects(
    good: dict[str, str], plants: Plants
) -> Iterator[tuple[str, dict[str, str], str]]:
    """Every body of the other protocols with a field of the wrong type, and not as JSON at all."""
    for path, body in plants.dialects():
        wrong = {**body, next(iter(body)): {"wrong": [plants.new(f"wrong field of {path}")]}}
        yield path, good, json.dumps(wrong)
        yield path, good, json.dumps(body)[:-1]
        yield path, {}, json.dumps(body)
    event = {"type": plants.new("event's type"), "completion_id": plants.new("event's completion")}
    yield "/v1/events", good, json.dumps({**event, "elapsed": plants.new("event's elapsed")})
    yield "/api/show", good, json.dumps({"model": [plants.new("model to show")]})


async def _open_badly(stack: Stack, key: str, plants: Plants) -> None:
    path = f"/v1/stream?key={key}&{plants.new('query of a stream')}=1"
    with pytest.raises(InvalidStatus):
        async with dial(stack.gateway_url, {}, path=path):
            pass
    headers = {"Authorization": f"Bearer {key}", "Origin": f"https://{plants.new('origin')}"}
    with pytest.raises(InvalidStatus):
        async with dial(stack.gateway_url, headers):
            pass
    text = plants.new("text that is not UTF-8").encode() + b"\xff"
    async with dial(stack.gateway_url, {"Authorization": f"Bearer {key}"}) as socket:
        await socket.send(text, text=True)
        with pytest.raises(ConnectionClosed):
            await socket.recv()


async def _end(stream: Stream) -> None:
    while (answer := await stream.receive())["type"] == "delta":
        pass
    assert answer["type"] == "done"


def _new_customer() -> tuple[Company, CreatedKey]:
    company = make_company("initech", {Role.DEVELOPER: "peter"})
    return company, make_key(company, company.developer)


def _num_rows(tenant_id: TenantId) -> int:
    with tenant(tenant_id):
        return UsageRecord.objects.filter(tenant_id=tenant_id).count()


class Haystack:
    """All that is kept: the files below each folder of the home, and the values of Redis."""

    def __init__(self, services: Services) -> None:
        self._home = services.paths.home
        self._kept: defaultdict[str, bytearray] = defaultdict(bytearray)
        for file in self._home.rglob("*"):
            # The secrets are the installation's: its own demonstration keys, no customer's.
            if file.is_file() and (folder := self._folder(file)) != "secrets":
                self._kept[folder] += file.read_bytes()
        with redis.Redis.from_url(services.redis_url) as connection:
            for name in connection.scan_iter():
                self._kept["Redis"] += name + (connection.dump(name) or b"")

    def holders(self, text: str) -> set[str]:
        return {place for place, kept in self._kept.items() if text.encode() in kept}

    def _folder(self, file: Path) -> str:
        return file.relative_to(self._home).parts[0]
