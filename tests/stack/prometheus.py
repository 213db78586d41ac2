"""A real Prometheus with Caret's rules, downloaded by `platform/scripts/prometheus`."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from urllib.request import ProxyHandler, build_opener

import pytest

from caret.local.paths import REPOSITORY
from caret.local.processes.child_process import dying_with_parent
from caret.local.processes.health_checks import is_responding
from tests.stack.ports import free_port
from tests.stack.waiting import wait_until
from tests.stack.watching import MONITORING

_FETCHED: Final = REPOSITORY / ".caret" / "cache" / "prometheus" / "usr" / "bin"
_EVERY_S: Final = 1
_START_S: Final = 30.0
_direct: Final = build_opener(ProxyHandler({}))  # ignores proxies of the environment


def program(name: str) -> str:
    """Return the path of the program.

    Skips the test if there is none.
    """
    found = shutil.which(name) or shutil.which(name, path=str(_FETCHED))
    if found is None:
        pytest.skip(f"{name} is not installed: run platform/scripts/prometheus")
    return found


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def series(self, expression: str) -> list[dict[str, Any]]:
        """Return an instant vector of the current time.

        Raises HTTPError for invalid PromQL.
        """
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return found

    def _get(self, what: str, **parameters: str) -> dict[str, Any]:
        with _direct.open(f"{self.url}/api/v1/{what}?{urlencode(parameters)}") as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data


@contextmanager
def prometheus(folder: Path, pages: Sequence[str]) -> Iterator[Prometheus]:
    """Scrape these metrics pages and evaluate Caret's rules, every second."""
    port = free_port()
    targets = [urlsplit(page) for page in pages]
    scrapes = [
        {
            "job_name": f"caret-{number}",
            "metrics_path": target.path,
            "static_configs": [{"targets": [target.netloc]}],
        }
        for number, target in enumerate(targets)
    ]
    every = {"scrape_interval": f"{_EVERY_S}s", "evaluation_interval": f"{_EVERY_S}s"}
    rule_files = [str(MONITORING / "alert_rules.yaml")]
    configuration = folder / "prometheus.yml"  # JSON is valid YAML
    configuration.write_text(
        json.dumps({"global": every, "rule_files": rule_files, "scrape_configs": scrapes})
    )
    command = (
        program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    )
    made = Prometheus(f"http://127.0.0.1:{port}")
    with subprocess.Popen(dying_with_parent(command), stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_responding(f"{made.url}/-/ready"), timeout_s=_START_S)
            yield made
        finally:
            process.terminate()
