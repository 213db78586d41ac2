"""Remembered files: bounded, in fair shares, and found by scope."""

from inference.retrieval.snippet_cache import FileKey
from inference.retrieval.tenant_lru import TenantLru


class _Counted(FileKey):
    """A file key that counts its comparisons."""

    num_looks = 0

    @property
    def scope(self) -> tuple[str, str]:
        type(self).num_looks += 1
        return super().scope


def _place(number: int, tenant: str = "acme", repository: str = "shop") -> FileKey:
    return _Counted(f"{tenant}||0", repository, f"{number}.py")


def test_a_tenants_least_recently_used_goes_first() -> None:
    notes = TenantLru[FileKey, int](max_items=12)
    for number in range(3):
        notes.set(_place(number), number)
    notes.touch(_place(0))

    notes.set(_place(3), 3)

    assert [value for _, value in notes.items()] == [2, 0, 3]


def test_when_all_is_full_it_is_who_has_most_that_gives_way() -> None:
    notes = TenantLru[FileKey, int](max_items=8)
    for number in range(8):
        notes.set(_place(number, f"t{number // 2}"), number)

    notes.set(_place(8, "late"), 8)

    assert sorted(value for _, value in notes.items()) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(notes) == 8


def test_a_scope_is_dropped_without_a_look_at_the_others() -> None:
    notes = TenantLru[FileKey, int](max_items=10_000)
    for number in range(2_000):
        notes.set(_place(number, repository="shop" if number < 5 else "other"), number)
    _Counted.num_looks = 0

    notes.remove_scope(("acme||0", "shop"))

    assert len(notes) == 1_995
    assert notes.get(_place(0)) is None
    assert _Counted.num_looks < 30
