"""PyPI's `pysaml2` in its own process: a SAML identity provider that we did not write.

Its installation is cached in `.caret/cache`, in a folder that is named after Python's version and a
hash of requirements.txt.
"""

import hashlib
import json
import select
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import urlopen

from cryptography.hazmat.primitives import serialization

from caret.local.paths import REPOSITORY
from tests.fakes.saml_provider import SamlProvider
from tests.stack.file_lock import file_lock
from tests.stack.ports import free_port

_SOURCE: Final = Path(__file__).with_name("saml_identity_provider")
_CACHE: Final = REPOSITORY / ".caret" / "cache"
_INSTALL_S: Final = 300.0
_START_S: Final = 60.0
_LIFETIME_S: Final = 900  # of an assertion; pysaml2's example has 15 minutes


@dataclass(frozen=True)
class SigningKey:
    """A key with its certificate, which the provider publishes in its metadata."""

    key_file: Path
    certificate_file: Path


def write_signing_key(folder: Path, name: str) -> SigningKey:
    provider = SamlProvider()  # only its key and certificate are used
    signing_key = SigningKey(folder / f"{name}.key", folder / f"{name}.crt")
    signing_key.key_file.write_bytes(
        provider.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    signing_key.certificate_file.write_bytes(
        provider.certificate.public_bytes(serialization.Encoding.PEM)
    )
    return signing_key


@dataclass(frozen=True)
class PySaml2Provider:
    service_provider_url: str  # where the console serves its metadata
    base_url: str = field(default_factory=lambda: f"http://127.0.0.1:{free_port()}")

    @property
    def metadata_url(self) -> str:
        return f"{self.base_url}/metadata"

    @contextmanager
    def running(
        self, signing_key: SigningKey, *, clock_skew_s: int = 0, delay_s: float = 0
    ) -> Iterator[None]:
        """Run the provider.

        `clock_skew_s` is how far its clock is ahead, and `delay_s` the time until its page appears.
        """
        with urlopen(self.service_provider_url) as response:  # noqa: S310  # our own console
            service_provider = response.read().decode()
        settings = {
            "baseUrl": self.base_url,
            "serviceProvider": service_provider,
            "keyFile": str(signing_key.key_file),
            "certificateFile": str(signing_key.certificate_file),
            "lifetimeS": _LIFETIME_S,
            "clockSkewS": clock_skew_s,
            "delayS": delay_s,
        }
        # -I: without our modules and without this process's Python settings.
        command = [str(_install()), "-I", str(_SOURCE / "server.py"), json.dumps(settings)]
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            try:
                assert process.stdout is not None
                has_output, _, _ = select.select([process.stdout], [], [], _START_S)
                line = process.stdout.readline().strip() if has_output else "no output in time"
                errors.seek(0)
                assert line == "ready", f"{line}: {errors.read().decode()}"
                yield
            finally:
                process.terminate()
                process.communicate(timeout=60)

    def is_at(self, url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(self.base_url).netloc


def _install() -> Path:
    """Install pysaml2 (60 MB) once for each requirements.txt, and return its interpreter."""
    requirements = _SOURCE / "requirements.txt"
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    folder = _CACHE / f"pysaml2-{version}-{digest}"
    python, complete_marker = folder / "bin" / "python", folder / "is_whole"
    with file_lock(folder.with_suffix(".lock")):
        if not complete_marker.exists():
            venv.create(folder, clear=True, with_pip=True)
            options = ["--quiet", "--no-input", "--disable-pip-version-check", "--require-hashes"]
            subprocess.run(
                [str(python), "-m", "pip", "install", *options, "-r", str(requirements)],
                check=True,
                capture_output=True,
                timeout=_INSTALL_S,
            )
            complete_marker.touch()
    return python
