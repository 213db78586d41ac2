"""Every export there is, by name. All formats, and what shows the same rows elsewhere, share its
one definition; changing what a column says is a new version of it.

Another module's exports are registered by a line here.
"""

from types import MappingProxyType
from typing import Final

from tenants.exports.export import Export
from tenants.exports.reports import usage

EXPORTS: Final[MappingProxyType[str, Export]] = MappingProxyType(
    {export.name: export for export in (*usage.EXPORTS,)}
)
