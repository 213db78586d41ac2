"""Anybody can download the public keys that verify the installation's signatures."""

from io import StringIO

from django.conf import settings
from django.core.management import call_command
from django.test import Client

from caret.foundation.crypto.signing import read_public_keys, verify
from tenants.base.signatures.signing_keys import load_signing_keys

ADDRESS = "/.well-known/caret-signing-keys.json"


def test_the_public_keys_are_available_without_sign_in() -> None:
    answer = Client().get(ADDRESS)

    keys = read_public_keys(answer.content)
    # This raises an error if the keys do not verify the signature.
    verify(keys, b"data", load_signing_keys().sign(b"data", purpose="t"), purpose="t")
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "public, max-age=300"


def test_the_command_prints_the_same_keys() -> None:
    output = StringIO()

    call_command("show_signing_keys", stdout=output)

    assert output.getvalue().encode() == Client().get(ADDRESS).content


def test_the_response_does_not_contain_the_root_secret() -> None:
    assert settings.ROOT_SECRET.hex() not in Client().get(ADDRESS).content.decode()


def test_a_post_is_refused() -> None:
    assert Client().post(ADDRESS).status_code == 405
