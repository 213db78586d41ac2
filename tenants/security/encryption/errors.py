"""Why something that was sealed is not opened. No text of these holds a key or what was sealed.

EncryptionFailed
├─ KeyDestroyed         its key was shredded: nobody will open it again
├─ RootKeyMissing       no root key of CARET_ROOT_KEYS is the one that wrapped its tenant's key
└─ RootKeyUnavailable   the root key's keeper (a KMS) does not answer, or refuses

What was changed or moved raises caret.foundation.crypto.aead.SealBroken.
"""


class EncryptionFailed(Exception):
    pass


class KeyDestroyed(EncryptionFailed):
    pass


class RootKeyMissing(EncryptionFailed):
    pass


class RootKeyUnavailable(EncryptionFailed):
    pass
