"""Every export there is, by name. All formats, and what shows the same rows elsewhere, share its
one definition; changing what a column says is a new version of it.

Another module's exports are registered by a line of _ALL.
"""

from types import MappingProxyType
from typing import Final

from tenants.compliance.exports.definitions import (
    audit_log,
    invoices,
    members_and_keys,
    policies_and_consent,
    processing_records,
    retention,
    usage,
)

_ALL: Final = (
    *usage.EXPORTS,
    *retention.EXPORTS,
    *audit_log.EXPORTS,
    *members_and_keys.EXPORTS,
    *policies_and_consent.EXPORTS,
    *invoices.EXPORTS,
    *processing_records.EXPORTS,
)
EXPORTS: Final = MappingProxyType({export.name: export for export in _ALL})

# All of them in one ZIP, see builds.pack; it has no rows of its own.
PACK: Final = "evidence_pack"
PACK_VERSION: Final = 1
PACK_MEDIA: Final = "zip"
