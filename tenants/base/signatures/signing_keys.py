"""The keys with which this installation signs documents."""

from functools import cache

from django.conf import settings

from caret.foundation.crypto.signing import SigningKeys


def load_signing_keys() -> SigningKeys:
    return _derive_signing_keys(settings.ROOT_SECRET, settings.SIGNING_KEY_VERSION)


@cache
def _derive_signing_keys(root_secret: bytes, version: int) -> SigningKeys:
    return SigningKeys(root_secret, version=version)
