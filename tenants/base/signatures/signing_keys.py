"""The keys with which this installation signs documents, such as deletion certificates."""

from functools import cache

from django.conf import settings

from caret.foundation.crypto.signing import SigningKeys


def load_signing_keys() -> SigningKeys:
    """Return the keys of all versions up to the current one, derived from the root secret."""
    return _derive_signing_keys(settings.ROOT_SECRET, settings.SIGNING_KEY_VERSION)


@cache
def _derive_signing_keys(root_secret: bytes, version: int) -> SigningKeys:
    return SigningKeys(root_secret, version=version)
