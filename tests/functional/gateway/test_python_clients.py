"""Official and common Python clients, in an environment of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
    home = tmp_path_factory.mktemp("python-clients-home")
    scenario = {"url": site.url, "key": site.acme_key, "home": str(home / "llm")}
    # The environment's proxies cannot reach this machine's loopback address.
    environment = {name: text for name, text in os.environ.items() if "proxy" not in name.lower()}
    process = subprocess.run(
        [str(python), str(CLIENTS / "python_clients.py")],
        input=json.dumps({**scenario, "prefix": PREFIX, "suffix": SUFFIX}),
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return result


def test_openais_client(results: dict[str, Any]) -> None:
    result = results["openai"]

    assert result["text"]
    assert (result["models"], result["model"]) == (["demo"], "demo")
    assert result["indexes"] == [0, 1]
    assert result["finish_reason"] in ("stop", "length")
    assert result["refusal"] == ["unsupported_parameter", "tools"]


def test_ollamas_client(results: dict[str, Any]) -> None:
    result = results["ollama"]

    assert result["text"]
    assert (result["running"], result["loading"], result["done"]) == ("demo", "load", True)
    assert "insert" in result["capabilities"]
    assert result["refusal"] == [501, "this model does not support embeddings"]


def test_mistrals_client(results: dict[str, Any]) -> None:
    result = results["mistral"]

    assert result["text"] == result["streamed"] != ""
    assert (result["type"], result["model"]) == ("base", "demo")
    assert result["finish_reason"] in ("stop", "length")


def test_langchain(results: dict[str, Any]) -> None:
    result = results["langchain"]

    assert result == {"text": result["text"], "several": 2, "chat": "demo", "ollama": True}
    assert result["text"]


def test_litellm(results: dict[str, Any]) -> None:
    result = results["litellm"]

    assert result["text"]
    assert result["finish_reason"] in ("stop", "length")


def test_llm(results: dict[str, Any]) -> None:
    assert results["llm"] == {"returncode": 0, "errors": ""}
