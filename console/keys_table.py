"""Keys as the table shows them."""

from dataclasses import dataclass
from typing import Final

from caret.contracts.credential import KeyKind
from tenants.keys.queries import KeyState, KeyView

KIND_NAMES: Final = {
    KeyKind.DEVELOPER: "Developer",
    KeyKind.TEST: "Test",
    KeyKind.SERVICE: "Service",
}


@dataclass(frozen=True, slots=True)
class KeyLine:
    key: KeyView
    prefix: str  # as the key begins
    kind_name: str
    state_name: str
    is_active: bool
    can_revoke: bool


def key_lines(keys: list[KeyView], *, can_revoke: bool) -> list[KeyLine]:
    return [key_line(key, can_revoke=can_revoke) for key in keys]


def key_line(key: KeyView, *, can_revoke: bool) -> KeyLine:
    return KeyLine(
        key=key,
        prefix=f"cpk_{key.kind}_{key.lookup_id}",
        kind_name=KIND_NAMES[key.kind],
        state_name=key.state.value.title(),
        is_active=key.state is KeyState.ACTIVE,
        can_revoke=can_revoke and key.state is not KeyState.REVOKED,
    )
