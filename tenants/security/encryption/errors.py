"""Errors of sealing and opening data. Their texts contain neither keys nor data.

EncryptionFailed
├─ KeyDestroyed         the key was destroyed, so data sealed with it can never be opened; or all
│                       keys of the tenant were destroyed, so no data can be sealed
├─ RootKeyMissing       CARET_ROOT_KEYS lacks the root key that wrapped the tenant key
└─ RootKeyUnavailable   the KMS of the root key does not respond, or refuses the request

Data that was changed or moved raises caret.foundation.crypto.aead.DecryptionFailed.
"""


class EncryptionFailed(Exception):
    pass


class KeyDestroyed(EncryptionFailed):
    pass


class RootKeyMissing(EncryptionFailed):
    pass


class RootKeyUnavailable(EncryptionFailed):
    pass
