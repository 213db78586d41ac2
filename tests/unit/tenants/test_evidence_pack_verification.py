"""Errors in the manifest of an evidence pack: a change, or a format unknown to the verifier."""

import io
import zipfile
from typing import Any

import pytest

from caret.foundation.crypto.canonical_json import canonicalize
from caret.foundation.crypto.signing import SigningKeys
from tenants.compliance.exports.evidence_pack_verification import (
    KIND,
    MANIFEST,
    PURPOSE,
    verify_pack,
)
from tenants.compliance.exports.verification import FORMAT, BrokenExport

KEYS = SigningKeys(bytes(range(32)), version=1)


def signed_manifest(**fields: Any) -> bytes:
    """Return the manifest of a pack without files."""
    document = {"kind": KIND, "format": FORMAT, "tenant": "acme", "files": [], **fields}
    return canonicalize(KEYS.sign_document(document, purpose=PURPOSE))


def verify_pack_with(manifest: bytes) -> dict[str, Any]:
    pack = io.BytesIO()
    with zipfile.ZipFile(pack, "w") as archive:
        archive.writestr(MANIFEST, manifest)
    return verify_pack(pack, KEYS.public_keys())


def test_an_unchanged_manifest_is_valid() -> None:
    assert verify_pack_with(signed_manifest())["tenant"] == "acme"


def test_an_unknown_format_is_named_as_the_reason() -> None:
    with pytest.raises(BrokenExport, match="the manifest: this verifier does not know its format"):
        verify_pack_with(signed_manifest(format=FORMAT + 1))


def test_another_spelling_of_the_same_manifest_is_a_change() -> None:
    with pytest.raises(BrokenExport, match="the manifest was changed after it was signed"):
        verify_pack_with(signed_manifest() + b"\n")
