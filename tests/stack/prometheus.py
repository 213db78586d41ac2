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
from tests.stack.monitoring import MONITORING
from tests.stack.ports import free_port
from tests.stack.waiting import wait_until

_DOWNLOADED: Final = REPOSITORY / ".caret" / "cache" / "prometheus" / "usr" / "bin"
_INTERVAL_S: Final = 1
_START_S: Final = 30.0
_direct: Final = build_opener(ProxyHandler({}))  # ignores proxies of the environment


def find_program(name: str) -> str:
    """Return the path of the program.

    Skips the test if there is none.
    """
    path = shutil.which(name) or shutil.which(name, path=str(_DOWNLOADED))
    if path is None:
        pytest.skip(f"{name} is not installed: run platform/scripts/prometheus")
    return path


@dataclass(frozen=True, slots=True)
class Prometheus:
    url: str

    def series(self, expression: str) -> list[dict[str, Any]]:
        """Return an instant vector of the current time.

        Raises HTTPError for invalid PromQL.
        """
        result: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return result

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def targets(self) -> list[dict[str, Any]]:
        active: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return active

    def _get(self, endpoint: str, **parameters: str) -> dict[str, Any]:
        with _direct.open(f"{self.url}/api/v1/{endpoint}?{urlencode(parameters)}") as response:
            data: dict[str, Any] = json.load(response)["data"]
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
    intervals = {"scrape_interval": f"{_INTERVAL_S}s", "evaluation_interval": f"{_INTERVAL_S}s"}
    rule_files = [str(MONITORING / "alert_rules.yaml")]
    configuration = folder / "prometheus.yml"  # JSON is valid YAML
    configuration.write_text(
        json.dumps({"global": intervals, "rule_files": rule_files, "scrape_configs": scrapes})
    )
    command = (
        find_program("prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    )
    server = Prometheus(f"http://127.0.0.1:{port}")
    with subprocess.Popen(dying_with_parent(command), stdin=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_responding(f"{server.url}/-/ready"), timeout_s=_START_S)
            yield server
        finally:
            process.terminate()
