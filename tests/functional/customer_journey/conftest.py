"""An installation that `manage.py up` starts, with a mail server and a DNS server beside it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from caret.local.paths import EmbeddedPaths
from caret.local.processes.process_tag import home_digest, terminate_tagged
from tests.fakes.dns_server import DnsServer, dns_server_in_thread
from tests.functional.conftest import Installation
from tests.stack.commands import environment_for
from tests.stack.mail_server import MailServer, mail_server
from tests.stack.ports import free_ports

# code-server replaces URLs of 127.0.0.1 and localhost with URLs of its own proxy, but not URLs of
# this name. Chromium resolves the name to 127.0.0.1.
_CONSOLE_HOST = "caret.localhost"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with tempfile.TemporaryDirectory() as folder, mail_server(Path(folder)) as server:
        yield server


@pytest.fixture
def dns() -> Iterator[DnsServer]:
    with dns_server_in_thread() as server:
        yield server


@pytest.fixture
def installation(mail: MailServer, dns: DnsServer) -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="caret-up-") as folder:
        home, ports = Path(folder) / "home", free_ports(4)
        environment = environment_for(home, ports=ports[:3]) | {
            "CARET_METRICS_PORT": str(ports[3]),  # the operator pages read the metrics
            "CARET_CONSOLE_URL": f"http://{_CONSOLE_HOST}:{ports[0]}",
            "CARET_ALLOWED_HOSTS": f"127.0.0.1,localhost,{_CONSOLE_HOST}",
            "CARET_SMTP_URL": mail.url,
            "SSL_CERT_FILE": str(mail.authority),
            "CARET_DOMAIN_RESOLVER": f"127.0.0.1:{dns.port}",
            "CARET_ALLOWED_PRIVATE_NETWORKS": "127.0.0.0/8",  # for the identity provider
        }
        installation = Installation(EmbeddedPaths(home), environment)
        try:
            process = installation.manage("up", "--detach")
            assert process.returncode == 0, process.stdout + process.stderr
            yield installation
        finally:
            installation.manage("down")
            terminate_tagged(home_digest(home), grace_s=1.0)
