"""Name probes: cuts inside a name, at which the model must copy the rest from its prompt."""

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


def build_prompt(fim_cut: FimCut) -> str:
    """Return a prompt with all text around the cut."""
    return f"{fim_cut.prefix}\n{fim_cut.suffix}"


def choose_probes(seed: int = 1) -> list[NameProbe]:
    return choose_name_probes(FILES, build_prompt, seed)


def test_probes_are_names_that_also_occur_in_the_prompt() -> None:
    names = {
        probe.typed_part + probe.remaining_part
        for seed in range(20)
        for probe in choose_probes(seed)
    }

    # Not chosen: keywords, builtins, and names that occur only once or only in strings.
    assert names == {"width", "height", "result"}


def test_an_empty_prompt_gives_no_probes() -> None:
    assert choose_name_probes(FILES, lambda _cut: "", 1) == []


def test_the_cursor_is_inside_the_name() -> None:
    for probe in choose_probes():
        assert probe.cut.prefix.endswith(probe.typed_part)
        assert probe.cut.middle.startswith(probe.remaining_part)
        assert probe.remaining_part


def test_the_cursor_is_inside_the_name_in_a_file_with_form_feeds() -> None:
    files = [SourceFile("shapes.py", f"import shapes\n\x0c\n{TEXT}", is_test=False)]

    probes = choose_name_probes(files, build_prompt, 1)

    assert probes
    for probe in probes:
        assert probe.cut.prefix.endswith(probe.typed_part)
        assert probe.cut.middle.startswith(probe.remaining_part)


def test_the_same_seed_chooses_the_same_probes() -> None:
    assert choose_probes(3) == choose_probes(3)


def test_a_name_is_copied_if_the_completion_begins_with_exactly_the_rest_of_the_name() -> None:
    probe = NameProbe(
        "shapes.py", FimCut("x = wi", "dth", ""), typed_part="wi", remaining_part="dth"
    )

    assert probe.is_copied_by("dth * height")
    assert not probe.is_copied_by("dths")
    assert not probe.is_copied_by("dt")
    assert not probe.is_copied_by("")
