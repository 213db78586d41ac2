"""Every export there is, by name. All formats, and what shows the same rows elsewhere, share its
one definition; changing what a column says is a new version of it.

Another module's exports are registered by a line of _ALL.
"""

from types import MappingProxyType
from typing import Final

from tenants.exports.reports import bills, people, processing, retention, rules, trail, usage

_ALL: Final = (
    *usage.EXPORTS,
    *retention.EXPORTS,
    *trail.EXPORTS,
    *people.EXPORTS,
    *rules.EXPORTS,
    *bills.EXPORTS,
    *processing.EXPORTS,
)
EXPORTS: Final = MappingProxyType({export.name: export for export in _ALL})

# All of them in one ZIP, see builds.pack; it has no rows of its own.
PACK: Final = "evidence_pack"
PACK_VERSION: Final = 1
PACK_MEDIA: Final = "zip"
