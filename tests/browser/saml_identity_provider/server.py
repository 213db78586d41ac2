"""A SAML identity provider that we did not write: pysaml2, behind a sign-in page.

Any password signs in. The settings come as JSON in the first argument. This process runs in a
virtual environment of its own (`tests.browser.saml_provider`) and imports none of our modules.
"""

import json
import sys
import time
from datetime import datetime, timedelta, tzinfo
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import saml2.time_util  # type: ignore[import-not-found]  # only in its own environment
from saml2 import (
    BINDING_HTTP_POST,
    BINDING_HTTP_REDIRECT,
)
from saml2.authn_context import PASSWORD  # type: ignore[import-not-found]
from saml2.config import IdPConfig  # type: ignore[import-not-found]
from saml2.metadata import create_metadata_string  # type: ignore[import-not-found]
from saml2.saml import (  # type: ignore[import-not-found]
    NAME_FORMAT_URI,
    NAMEID_FORMAT_EMAILADDRESS,
    NameID,
)
from saml2.server import Server  # type: ignore[import-not-found]
from saml2.xmldsig import (  # type: ignore[import-not-found]
    DIGEST_SHA256,
    SIG_RSA_SHA256,
)

_SETTINGS = json.loads(sys.argv[1])
_SKEW = timedelta(seconds=_SETTINGS["clockSkewS"])
_FORM = """<!doctype html><title>Sign in</title><form method="post">
<label>Address <input name="login"></label>
<label>Password <input name="password" type="password"></label>
<button>Sign in</button></form>"""


class _SkewedDatetime(datetime):
    """The class `datetime`, with a `now` that is ahead by the clock skew."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + _SKEW


class _SkewedTime:
    """The module `time`, with a `gmtime` that is ahead by the clock skew."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def gmtime(self, seconds: float | None = None) -> time.struct_time:
        now = time.time() + _SKEW.total_seconds()
        return time.gmtime(now if seconds is None else seconds)


def _make_server() -> Any:
    base = _SETTINGS["baseUrl"]
    policy = {
        "lifetime": {"seconds": _SETTINGS["lifetimeS"]},
        "attribute_restrictions": None,
        "name_form": NAME_FORMAT_URI,
    }
    config = IdPConfig().load(
        {
            "entityid": f"{base}/metadata",
            "service": {
                "idp": {
                    "endpoints": {
                        "single_sign_on_service": [(f"{base}/sso", BINDING_HTTP_REDIRECT)]
                    },
                    "name_id_format": [NAMEID_FORMAT_EMAILADDRESS],
                    "policy": {"default": policy},
                }
            },
            "metadata": {"inline": [_SETTINGS["serviceProvider"]]},
            "key_file": _SETTINGS["keyFile"],
            "cert_file": _SETTINGS["certificateFile"],
            "crypto_backend": "XMLSecurity",  # a package; the default needs the program xmlsec1
        }
    )
    return Server(config=config)


class _Handler(BaseHTTPRequestHandler):
    server_of_pysaml2: Any

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path == "/metadata":
            config = self.server_of_pysaml2.config
            self._send(create_metadata_string(None, config=config), "application/samlmetadata+xml")
        elif path == "/sso":
            time.sleep(_SETTINGS["delayS"])
            self._send(_FORM.encode(), "text/html")
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        email = parse_qs(body)["login"][0]
        (saml_request,) = parse_qs(urlsplit(self.path).query)["SAMLRequest"]
        self._send(self._respond(saml_request, email).encode(), "text/html")

    def _respond(self, saml_request: str, email: str) -> str:
        """Return the page that posts the response to the service provider."""
        idp = self.server_of_pysaml2
        message = idp.parse_authn_request(saml_request, BINDING_HTTP_REDIRECT).message
        arguments = idp.response_args(message)
        response = idp.create_authn_response(
            identity={"mail": [email], "displayName": ["Grace Hopper"]},
            in_response_to=arguments["in_response_to"],
            destination=arguments["destination"],
            sp_entity_id=arguments["sp_entity_id"],
            name_id=NameID(format=NAMEID_FORMAT_EMAILADDRESS, text=email),
            authn={"class_ref": PASSWORD},
            sign_assertion=True,
            sign_response=False,
            sign_alg=SIG_RSA_SHA256,  # the default is SHA-1, which Caret refuses
            digest_alg=DIGEST_SHA256,
        )
        page = idp.apply_binding(
            BINDING_HTTP_POST, str(response), arguments["destination"], response=True
        )
        return str(page["data"])

    def _send(self, body: bytes, content_type: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def main() -> None:
    if _SKEW:  # pysaml2 reads the time only through this module
        saml2.time_util.datetime = _SkewedDatetime
        saml2.time_util.time = _SkewedTime()
    _Handler.server_of_pysaml2 = _make_server()
    port = urlsplit(_SETTINGS["baseUrl"]).port
    with ThreadingHTTPServer(("127.0.0.1", port or 0), _Handler) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
