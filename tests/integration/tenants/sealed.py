"""A company's sealed data, and the rotation of its encryption keys."""

from django.utils import timezone

from tenants.security.encryption.envelope import SealContext
from tenants.security.encryption.key_cache import key_cache
from tenants.security.encryption.operations import seal_in_scope
from tenants.security.encryption.queries import open_sealed
from tenants.security.encryption.rotation import RotationResult, rotate_tenant_keys
from tests.fixtures.companies import Company

PLAINTEXT = b"text"
SEAL_CONTEXT = SealContext(table="content_object", column="content", row="7")


def seal(company: Company, scope: str = "user:ada") -> bytes:
    """Return PLAINTEXT, sealed with the data key of the scope."""
    return seal_in_scope(
        company.tenant_id, scope, context=SEAL_CONTEXT, data=PLAINTEXT, now=timezone.now()
    )


def unseal(company: Company, sealed: bytes) -> bytes:
    return open_sealed(company.tenant_id, context=SEAL_CONTEXT, envelope=sealed)


def rotate(company: Company, *, replacing: bool = False) -> RotationResult:
    """Rotate the tenant's keys. With `replacing`, also replace the tenant key itself."""
    now = timezone.now()
    return rotate_tenant_keys(
        tenant_id=company.tenant_id, now=now, older_than=now if replacing else None
    )


def clear_key_cache() -> None:
    """Empty the key cache, as in a new process."""
    for key in list(key_cache._keys):
        key_cache.remove(key)
