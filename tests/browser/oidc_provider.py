"""npm's `oidc-provider` in its own process: an identity provider that we did not write.

Its installation is cached in `.caret/cache`, in a folder that is named after a hash of the lock
file.
"""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from caret.local.paths import REPOSITORY
from tests.stack.file_lock import file_lock
from tests.stack.ports import free_port

CLIENT_ID: Final = "caret"
CLIENT_SECRET: Final = "a secret of the provider's"
_SOURCE: Final = Path(__file__).with_name("identity_provider")
_CACHE: Final = REPOSITORY / ".caret" / "cache"
_FILES: Final = ("package.json", "package-lock.json", "server.mjs")
_INSTALL: Final = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
_INSTALL_S: Final = 300.0


def new_signing_key(kid: str) -> dict[str, Any]:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    jwk: dict[str, Any] = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key))
    # A key should not have both `key_ops` and `use` (RFC 7517, section 4.3).
    return {name: value for name, value in jwk.items() if name != "key_ops"} | {
        "kid": kid,
        "use": "sig",
        "alg": "RS256",
    }


@dataclass(frozen=True)
class OidcProvider:
    redirect_uri: str
    issuer: str = field(default_factory=lambda: f"http://127.0.0.1:{free_port()}")

    @contextmanager
    def running(
        self,
        *,
        signing_key_id: str = "first",
        conforms: bool = True,
        clock_skew_s: int = 0,
        token_delay_s: float = 0,
    ) -> Iterator[None]:
        """Run the provider with a new signing key of this ID.

        A provider that conforms to OpenID Connect returns e-mail address and name only at its
        UserInfo endpoint. With `conforms=False` they are in the ID token, too. `clock_skew_s` is
        how far the provider's clock is ahead, and `token_delay_s` how long its token endpoint
        waits.
        """
        folder = _install()
        settings = {
            "issuer": self.issuer,
            "clientId": CLIENT_ID,
            "clientSecret": CLIENT_SECRET,
            "redirectUri": self.redirect_uri,
            "conforms": conforms,
            "clockSkewMs": clock_skew_s * 1_000,
            "tokenDelayMs": token_delay_s * 1_000,
            "keys": [new_signing_key(signing_key_id)],
        }
        command = ["node", "server.mjs", json.dumps(settings)]
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "ready"
            yield
        finally:
            process.terminate()
            process.communicate(timeout=60)

    def is_at(self, url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(self.issuer).netloc


def _install() -> Path:
    """Install the package (4 MB) once for each lock file. Skips the test without Node."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    lock = (_SOURCE / "package-lock.json").read_bytes()
    folder = _CACHE / f"oidc-provider-{hashlib.sha256(lock).hexdigest()[:12]}"
    complete_marker = folder / "is_whole"
    with file_lock(folder.with_suffix(".lock")):
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            shutil.copy(_SOURCE / name, folder)
        if not complete_marker.exists():
            subprocess.run(["npm", *_INSTALL], cwd=folder, check=True, timeout=_INSTALL_S)
            complete_marker.touch()
    return folder
