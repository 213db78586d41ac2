"""The keys with which this installation signs documents."""

from functools import cache

from django.conf import settings

from caret.foundation.crypto.signing import SigningKeys


def signing_keys() -> SigningKeys:
    return _derive(settings.ROOT_SECRET, settings.SIGNING_KEY_VERSION)


@cache
def _derive(root_secret: bytes, version: int) -> SigningKeys:
    return SigningKeys(root_secret, version=version)
