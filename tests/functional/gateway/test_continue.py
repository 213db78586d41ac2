"""Completions of Continue, an editor extension, with the settings that the console shows.

The tests run Continue's completion provider from its public sources, without an editor.
"""

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.functional.clients.console_settings import make_settings
from tests.functional.clients.plugin_sources import find_plugin
from tests.functional.gateway.gateway_stack import Site

pytestmark = [
    pytest.mark.engine,
    pytest.mark.deep,
    pytest.mark.skipif(shutil.which("npm") is None, reason="Continue needs Node and npm"),
]
CLIENT = Path(__file__).parents[1] / "clients" / "continue"
REPOSITORY = "continuedev/continue"
DEADLINE_S = 60
INSTALL_S = 300
LINE = "    with open("
CODE = f"import os\n\n\ndef read(path):\n{LINE}\n        return file.read()\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Bundle Continue's completion provider in a folder.

    The folder is also Continue's HOME, where it stores its settings.
    """
    parent = tmp_path_factory.mktemp("continue")
    folder = parent / "client"
    sources = find_plugin(REPOSITORY, parent)
    shutil.copytree(CLIENT, folder)
    npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    for command in (npm, ["node", "bundle.mjs", str(sources)]):
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
        assert process.returncode == 0, process.stderr
    yield folder
    shutil.rmtree(parent)


async def run_continue(folder: Path, project: Path, config: str) -> dict[str, Any]:
    """Request a completion after each of the last two characters of the line, as while typing.

    Return Continue's last completion and its errors.
    """
    file = project / "main.py"
    file.write_text(CODE)
    line = CODE.split("\n").index(LINE)
    positions = [{"line": line, "character": len(LINE) - num_untyped} for num_untyped in (1, 0)]
    scenario = {
        "config": config,
        "folder": str(project),
        "file": str(file),
        "positions": positions,
    }
    path = shutil.which("node")
    assert path is not None
    node = await asyncio.create_subprocess_exec(
        path,
        str(folder / "complete.cjs"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"HOME": str(folder)},
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            output, log = await node.communicate(json.dumps(scenario).encode())
    finally:
        if node.returncode is None:
            node.kill()
            await node.wait()
    assert output, log.decode()
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


async def test_continue_completes(site: Site, folder: Path, tmp_path: Path) -> None:
    before = await site.num_records()

    result = await run_continue(
        folder, tmp_path, make_settings("continue", site.url, site.acme_key)
    )

    assert (result["roles"], result["errors"]) == (["autocomplete"], [])
    assert result["completion"].strip()
    # Continue waits for a pause in typing: it sends only the second of the two requests.
    (completion,) = await site.records_after(before)
    assert (completion.protocol, completion.editor) == ("mistral", "vscode")
    assert completion.language == "python"  # from the path in a comment of the prompt


async def test_continue_reports_a_wrong_key(site: Site, folder: Path, tmp_path: Path) -> None:
    result = await run_continue(
        folder, tmp_path, make_settings("continue", site.url, "cpk_live_nonsense")
    )

    assert result["completion"] is None
    assert len(result["errors"]) == 1
