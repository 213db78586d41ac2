"""Object store of encrypted content: Django's storage `content`, a folder or a bucket.

    <tenant ID>/<object ID>      the name of an object

If the storage fails, it raises OSError or an exception of its library.
"""

from typing import Final
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages

from caret.foundation.ids import TenantId
from tenants.security.encryption.envelope import SealContext

STORAGE: Final = "content"  # name in settings.STORAGES


def store_object(tenant_id: TenantId, object_id: UUID, envelope: bytes) -> None:
    """Store sealed data as a new object."""
    name = _name_object(tenant_id, object_id)
    saved_name = _get_storage().save(name, ContentFile(envelope))
    assert saved_name == name, "object IDs are random: no name exists twice"


def read_object(tenant_id: TenantId, object_id: UUID) -> bytes:
    """Return the sealed data of an object. Raises FileNotFoundError."""
    with _get_storage().open(_name_object(tenant_id, object_id)) as file:
        data: bytes = file.read()
        return data


def delete_object(tenant_id: TenantId, object_id: UUID) -> None:
    """Delete an object, if it exists."""
    _get_storage().delete(_name_object(tenant_id, object_id))


def delete_all_objects(tenant_id: TenantId) -> int:
    """Delete all objects of a tenant, also those without a database row, and return how many."""
    try:
        _, names = _get_storage().listdir(str(tenant_id))
    except FileNotFoundError:
        return 0
    for name in names:
        _get_storage().delete(f"{tenant_id}/{name}")
    return len(names)


def build_seal_context(object_id: UUID) -> SealContext:
    """Return the context that an object's sealed data is bound to."""
    return SealContext(table="content_object", column="content", row=str(object_id))


def _get_storage() -> Storage:
    return storages[STORAGE]


def _name_object(tenant_id: TenantId, object_id: UUID) -> str:
    return f"{tenant_id}/{object_id}"
