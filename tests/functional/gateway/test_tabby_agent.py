"""Tabby's own agent works with the gateway.

The agent is a Node program. Tabby's editor plug-ins run it to request completions.
"""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from caret.contracts.usage import CompletionRecord, OutcomeRecord
from tests.functional.gateway.gateway_stack import Site

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.skipif(
        shutil.which("npm") is None, reason="Tabby's agent comes from npm and needs Node"
    ),
]
CLIENTS = Path(__file__).parents[1] / "clients"
DEADLINE_S = 30
# The demonstration model continues this line.
PREFIX = """\
import os


class Reader:
    def __init__(self, path, mode):
        self.path = path
        self.m"""
SUFFIX = "\n"
# Long enough that the engine is still prefilling it when the request is superseded. It is one line,
# because the agent sends the last twenty lines.
OLDER_STATE = "# " + "an older state, " * 400 + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install the agent in a folder. The agent also uses the folder as its HOME for settings."""
    folder = tmp_path_factory.mktemp("tabby-agent")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(CLIENTS / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    installed = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert installed.returncode == 0, installed.stderr
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def scenario(site: Site, folder: Path) -> dict[str, Any]:
    text, position = PREFIX + SUFFIX, len(PREFIX)
    request = {
        "filepath": "/work/shop/src/main.py",
        "language": "python",
        "text": text,
        "position": position,
        "workspace": "/work/shop",
        "git": {
            "root": "/work/shop",
            "remotes": [{"name": "origin", "url": "git@example.com:acme/shop.git"}],
        },
        "declarations": [{"filepath": "/work/shop/lib.py", "offset": 0, "text": "def lib(): ..."}],
    }
    return {
        "endpoint": site.url,
        "token": site.acme_key,
        "folder": str(folder),
        "request": request,
        "superseded": {
            **request,
            "text": OLDER_STATE + text,
            "position": len(OLDER_STATE) + position,
        },
        "pauseMs": 30,  # before the second request; shorter than the prefill of OLDER_STATE
    }


async def run_agent(scenario: dict[str, Any]) -> dict[str, Any]:
    """Run the scenario with `tabby_agent.mjs` and return the agent's results."""
    node = await asyncio.create_subprocess_exec(
        "node",
        str(CLIENTS / "tabby_agent.mjs"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"HOME": scenario["folder"], "PATH": _path()},
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            output, _ = await node.communicate(json.dumps(scenario).encode())
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    result: dict[str, Any] = json.loads(output)
    return result


async def test_the_agent_connects_completes_and_reports(
    site: Site, scenario: dict[str, Any]
) -> None:
    num_records = await site.num_records()

    result = await run_agent(scenario)

    assert (result["status"], result["issues"]) == ("ready", [])
    assert result["isTrackingDisabled"]
    assert result["superseded"] == "AbortError"
    assert result["completion"]["choices"], "the model wrote nothing"
    # The gateway accepts all five events. The second view of the suggestion is not an outcome.
    assert result["events"] == [True] * 5
    await site.num_records()  # waits until all records are delivered
    records = site.records()[num_records:]
    completions = [record for record in records if isinstance(record, CompletionRecord)]
    outcomes = [record for record in records if isinstance(record, OutcomeRecord)]
    assert {record.protocol for record in completions} == {"tabby"}
    assert result["completion"]["id"] == f"cmpl-{completions[-1].request_id}"
    assert [outcome.event for outcome in outcomes] == [
        "shown",
        "partially_accepted",
        "accepted",
        "rejected",
    ]
    assert {outcome.request_id for outcome in outcomes} == {completions[-1].request_id}
    assert outcomes[0].chars > 0


async def test_the_agent_reports_a_wrong_token(scenario: dict[str, Any]) -> None:
    result = await run_agent({**scenario, "token": "cpk_live_nonsense"})

    assert result["status"] == "unauthorized"


def _path() -> str:
    node = shutil.which("node")
    assert node is not None
    return str(Path(node).parent)
