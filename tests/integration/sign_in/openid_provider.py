"""A small OpenID provider: a real HTTP server that issues signed tokens.

It checks authorization codes, PKCE and the client secret. Tests set the claims of its tokens.
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.server_thread import serving_in_thread

CLIENT_ID, CLIENT_SECRET = "caret", "a secret of the provider's"
ABSENT = object()  # as a claim's value: the claim is left out


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class OpenIdProvider:
    issuer: str = ""
    key: rsa.RSAPrivateKey = field(default_factory=new_key)  # its public half is published
    signing_key: rsa.RSAPrivateKey | None = None  # signs tokens; None: `key`
    claims: dict[str, Any] = field(default_factory=dict)
    # Additional fields of the token response.
    extra_fields: dict[str, Any] = field(default_factory=dict)
    # Signs the claims of a token; None: RS256 with `signing_key`.
    sign: Callable[[dict[str, Any]], str] | None = None
    keys: list[dict[str, Any]] | None = None  # published instead of `key`, as JWKs; None: `key`
    # By authorization code: the query of the request for which the code was issued.
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    # By path: returns the bytes that are sent instead of the normal response.
    raw: dict[str, Callable[[], Iterable[bytes]]] = field(default_factory=dict)

    def authorize(self, url: str) -> str:
        """Return the redirect of the user's browser after the sign-in at the provider."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.issuer}/authorize?")
        assert (query["client_id"], query["response_type"]) == (CLIENT_ID, "code")
        assert "openid" in query["scope"].split()
        assert query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        redirect_url = urlsplit(query["redirect_uri"])
        return f"{redirect_url.path}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        """Return the token response; None if the request is invalid. A code works once."""
        query = self.codes.pop(form.get("code", ""), None)
        if query is None or form.get("client_secret") != CLIENT_SECRET:
            return None
        # PKCE: the challenge is the digest of the verifier.
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != query["code_challenge"]:
            return None
        if form.get("redirect_uri") != query["redirect_uri"]:
            return None
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "u1", "iat": now, "exp": now + 300}
        if "max_age" in query:
            claims["auth_time"] = now
        all_claims = claims | self.claims
        claims_sent = {name: value for name, value in all_claims.items() if value is not ABSENT}
        key = self.signing_key or self.key
        signed = (
            jwt.encode(claims_sent, key, "RS256", headers={"kid": "k1"})
            if self.sign is None
            else self.sign(claims_sent)
        )
        return {"access_token": "x", "token_type": "Bearer", "id_token": signed} | self.extra_fields

    def document(self, path: str) -> dict[str, Any] | None:
        """Return the configuration or the published signing keys; None for another path."""
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
            }
        if path == "/keys":
            if self.keys is not None:
                return {"keys": self.keys}
            public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
            return {"keys": [public | {"kid": "k1", "alg": "RS256", "use": "sig"}]}
        return None


@contextmanager
def running_provider() -> Iterator[OpenIdProvider]:
    provider = OpenIdProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond(provider.document(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._respond(provider.token(form) if self.path == "/token" else None)

        def _respond(self, document: dict[str, Any] | None) -> None:
            if (pieces := provider.raw.get(self.path)) is not None:
                with suppress(OSError):  # the client has disconnected
                    self.wfile.writelines(pieces())
                return
            body = json.dumps(document or {"error": "invalid_grant"}).encode()
            self.send_response(400 if document is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.issuer = f"http://127.0.0.1:{server.server_address[1]}"
    with serving_in_thread(server):
        yield provider
