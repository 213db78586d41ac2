"""The choice of name probes, and the rule for a copied name."""

from inference.demo_model.corpus import SourceFile
from inference.demo_model.evaluation.name_probes import NameProbe, choose_name_probes
from inference.demo_model.fim import FimCut

TEXT = '''"""Mentions documented_name, documented_name."""

def area(width, height):
    """Return width times height."""
    result = width * height
    single_use = print(len(self))
    return result
'''
FILES = [SourceFile("shapes.py", TEXT, is_test=False)]


def whole(cut: FimCut) -> str:
    return f"{cut.prefix}\n{cut.suffix}"


def chosen(seed: int = 1) -> list[NameProbe]:
    return choose_name_probes(FILES, whole, seed)


def test_only_names_that_stand_elsewhere_in_the_prompt_are_asked_for() -> None:
    names = {probe.typed + probe.rest for seed in range(20) for probe in chosen(seed)}

    assert names == {"width", "height", "result"}


def test_no_name_is_asked_for_when_the_prompt_shows_nothing() -> None:
    assert choose_name_probes(FILES, lambda cut: "", 1) == []


def test_the_cursor_stands_in_the_name() -> None:
    for probe in chosen():
        assert probe.cut.prefix.endswith(probe.typed)
        assert probe.cut.middle.startswith(probe.rest)
        assert probe.rest


def test_the_same_seed_chooses_the_same() -> None:
    assert chosen(3) == chosen(3)


def test_a_name_counts_as_copied_when_it_is_complete_and_ends_there() -> None:
    probe = NameProbe("shapes.py", FimCut("x = wi", "dth", ""), typed="wi", rest="dth")

    assert probe.is_copied_by("dth * height")
    assert not probe.is_copied_by("dths")
    assert not probe.is_copied_by("dt")
    assert not probe.is_copied_by("")
