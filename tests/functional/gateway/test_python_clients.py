"""Official and common Python clients work with the gateway, as do the console's snippets.

The clients are installed in a virtual environment. The script `python_clients.py` calls each of
them and prints the results that these tests check.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.functional.clients.console_settings import make_settings
from tests.functional.gateway.gateway_stack import Site

pytestmark = [pytest.mark.engine, pytest.mark.deep]
CLIENTS = Path(__file__).parents[1] / "clients"
INSTALL_S = 300
DEADLINE_S = 180
PREFIX = "import os\n\n\ndef read(path):\n    with open("
SUFFIX = "\n        return file.read()\n"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the clients."""
    folder = tmp_path_factory.mktemp("python-clients") / "venv"
    python = folder / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "-r", str(CLIENTS / "requirements.txt")],
    ):
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
        if process.returncode:
            pytest.skip(f"the clients could not be installed: {process.stderr[-500:]}")
    return python


@pytest.fixture(scope="module")
def results(site: Site, python: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the results of `python_clients.py`, by client."""
    home = tmp_path_factory.mktemp("python-clients-home")
    scenario = {"url": site.url, "key": site.acme_key, "home": str(home / "llm")}
    process = subprocess.run(
        [str(python), str(CLIENTS / "python_clients.py")],
        input=json.dumps({**scenario, "prefix": PREFIX, "suffix": SUFFIX}),
        env={**_environment(), "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def _environment() -> dict[str, str]:
    """Return the environment without proxies, which cannot reach the loopback address."""
    return {name: text for name, text in os.environ.items() if "proxy" not in name.lower()}


def _snippet(code: str, site: Site) -> str:
    """Return the snippet of the console's page Editors, with the gateway's URL and a key."""
    return make_settings(code, site.url, site.acme_key)


async def _run_snippet(site: Site, command: list[str], editor: str) -> str:
    """Return the snippet's output. Assert that it requests one completion, as this editor."""
    num_records = await site.num_records()
    output = await asyncio.to_thread(
        subprocess.check_output, command, env=_environment(), text=True, timeout=DEADLINE_S
    )
    (record,) = await site.records_after(num_records)
    assert record.editor == editor
    return output


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
@pytest.mark.parametrize(("code", "answer_field"), [("curl", "text"), ("curl-chat", "message")])
async def test_the_consoles_curl_commands_work(site: Site, code: str, answer_field: str) -> None:
    output = await _run_snippet(site, ["bash", "-c", _snippet(code, site)], "curl")

    assert answer_field in json.loads(output)["choices"][0]


@pytest.mark.parametrize("code", ["python", "python-chat"])
async def test_the_consoles_python_snippets_work(site: Site, python: Path, code: str) -> None:
    await _run_snippet(site, [str(python), "-c", _snippet(code, site)], "openai")


def test_openais_client_completes_streams_and_reports_errors(results: dict[str, Any]) -> None:
    result = results["openai"]

    assert result["text"]
    assert (result["models"], result["model"]) == (["demo"], "demo")
    assert result["indexes"] == [0, 1]
    assert result["finish_reason"] in ("stop", "length")
    assert result["refusal"] == ["unsupported_parameter", "tools"]


def test_ollamas_client_completes_and_reports_errors(results: dict[str, Any]) -> None:
    result = results["ollama"]

    assert result["text"]
    assert (result["running"], result["loading"], result["done"]) == ("demo", "load", True)
    assert "insert" in result["capabilities"]
    assert result["refusal"] == [501, "this model does not support embeddings"]


def test_mistrals_client_completes_streams_and_chats(results: dict[str, Any]) -> None:
    result = results["mistral"]

    assert result["text"]
    assert result["streamed"] == result["text"]
    assert (result["type"], result["model"]) == ("base", "demo")
    assert result["finish_reason"] in ("stop", "length")


def test_langchain_completes_and_chats(results: dict[str, Any]) -> None:
    result = results["langchain"]

    assert result["text"]
    assert (result["several"], result["chat"], result["ollama"]) == (2, "demo", True)


def test_litellm_completes_and_chats(results: dict[str, Any]) -> None:
    result = results["litellm"]

    assert result["text"]
    assert result["finish_reason"] in ("stop", "length")


def test_the_llm_program_ends_without_an_error(results: dict[str, Any]) -> None:
    assert results["llm"] == {"returncode": 0, "errors": ""}
