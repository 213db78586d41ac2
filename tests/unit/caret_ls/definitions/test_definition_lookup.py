"""Looking up definitions: the questions to the editor, and the definitions that may be sent.

The editor is asked where the symbols before the cursor are defined.
"""

from pathlib import Path

import pytest

from caret_ls.definitions.definition_lookup import (
    MAX_PENDING,
    DefinitionQuestion,
    Location,
)
from caret_ls.session import Session
from caret_ls.settings import Settings
from caret_ls.text_document import Position
from tests.unit.caret_ls.provider_harness import ManualClock

# A symbol is looked up again after a minute, or after 5 s if no other file defines it.
_AFTER_MAX_AGE_S = 61
_RETRY_AFTER_S = 5
_LINE = "total = price_of(order"
_DEFINITION = "def price_of(order, rate):\n    return order\n"


class Harness:
    """A session with one open file in a repository, and the questions to its editor."""

    def __init__(self, root: Path, *, excluded: tuple[str, ...] = ()) -> None:
        (root / ".git").mkdir()
        self.root = root
        self.clock = ManualClock()
        self.session = Session(Settings(excluded_globs=excluded), self.clock, lambda _status: None)
        self.questions: list[DefinitionQuestion] = []
        self.session.definitions.send_question = self.questions.append
        self.uri = self.write("a.py", _LINE)
        self.session.open(self.uri, "python", _LINE)

    def write(self, name: str, text: str) -> str:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file.as_uri()

    def look_up(self) -> DefinitionQuestion:
        """Look up definitions for a cursor at the end of the line; return the newest question."""
        self.session.look_up_definitions(self.uri, Position(0, len(_LINE)))
        return self.questions[-1]

    async def answer(self, *locations: Location | None) -> None:
        """Look up the symbols `total` and `price_of`, and answer with a location for each.

        None: the editor has found no definition.
        """
        await self.session.definitions.on_answer(self.look_up().token, locations)

    @property
    def definitions(self) -> list[tuple[str, str]]:
        file = self.session.files.get(self.uri)
        assert file is not None
        context = self.session._build_context(file)
        return [(item.path, item.text) for item in context.definitions]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


async def test_the_editor_is_asked_for_the_symbols_before_the_cursor(harness: Harness) -> None:
    question = harness.look_up()

    # The positions of `total` and `price_of`. The symbol `order` is still being typed.
    positions = (Position(0, 0), Position(0, 8))
    assert question == DefinitionQuestion(token=1, uri=harness.uri, positions=positions)


async def test_a_symbol_is_looked_up_again_only_after_a_minute(harness: Harness) -> None:
    harness.look_up()
    harness.look_up()
    assert len(harness.questions) == 1

    harness.clock.now_s += _AFTER_MAX_AGE_S
    harness.look_up()

    assert len(harness.questions) == 2


@pytest.mark.parametrize("is_found_in_file", [False, True])
async def test_a_symbol_not_found_in_another_file_is_looked_up_again_soon(
    harness: Harness, is_found_in_file: bool
) -> None:
    location = Location(harness.uri, 0) if is_found_in_file else None
    await harness.answer(location, location)
    harness.look_up()
    assert len(harness.questions) == 1

    harness.clock.now_s += _RETRY_AFTER_S
    harness.look_up()

    assert len(harness.questions) == 2


async def test_the_definition_of_another_file_is_sent(harness: Harness) -> None:
    uri = harness.write("shop/prices.py", "RATE = 1\n" + _DEFINITION)

    await harness.answer(None, Location(uri, 1))

    assert harness.definitions == [("shop/prices.py", "def price_of(order, rate):\n")]


async def test_unsaved_text_of_an_open_file_is_used(harness: Harness) -> None:
    uri = harness.write("prices.py", "")
    harness.session.open(uri, "python", _DEFINITION)

    await harness.answer(None, Location(uri, 0))

    assert harness.definitions == [("prices.py", "def price_of(order, rate):\n")]


@pytest.mark.parametrize(
    "name", ["secrets/prices.py", ".env", "id_rsa", "node_modules/prices.js", "x.lock"]
)
async def test_excluded_secret_and_generated_files_are_not_sent(tmp_path: Path, name: str) -> None:
    harness = Harness(tmp_path, excluded=("secrets/**",))

    await harness.answer(None, Location(harness.write(name, _DEFINITION), 0))

    assert harness.definitions == []


@pytest.mark.parametrize("name", ["secrets/prices.py", ".env", "x.lock"])
async def test_an_open_file_that_must_not_be_sent_is_not_sent(tmp_path: Path, name: str) -> None:
    harness = Harness(tmp_path, excluded=("secrets/**",))
    uri = harness.write(name, "")
    harness.session.open(uri, "python", _DEFINITION)

    await harness.answer(None, Location(uri, 0))

    assert harness.definitions == []


async def test_a_file_that_is_excluded_later_is_not_sent_any_more(harness: Harness) -> None:
    await harness.answer(None, Location(harness.write("legal/prices.py", _DEFINITION), 0))
    assert harness.definitions

    harness.session.policies.update(
        {
            "type": "policy",
            "repository": harness.root.name,
            "excluded_globs": ["legal/**"],
            "modes": [],
        }
    )

    assert harness.definitions == []


async def test_files_outside_of_the_repository_are_not_sent(
    harness: Harness, tmp_path: Path
) -> None:
    outside = tmp_path.parent / "outside.py"
    outside.write_text(_DEFINITION)
    (harness.root / "link.py").symlink_to(outside)
    nested = harness.write("nested/prices.py", _DEFINITION)
    (harness.root / "nested" / ".git").mkdir()

    for uri in (outside.as_uri(), (harness.root / "link.py").as_uri(), nested, "http://a/b.py"):
        harness.clock.now_s += _AFTER_MAX_AGE_S  # so that the editor is asked again
        await harness.answer(None, Location(uri, 0))

    assert harness.definitions == []


async def test_the_files_own_definitions_are_not_sent(harness: Harness) -> None:
    await harness.answer(None, Location(harness.uri, 0))

    assert harness.definitions == []


async def test_an_unknown_or_late_answer_is_ignored(harness: Harness) -> None:
    uri = harness.write("prices.py", _DEFINITION)
    unknown_token = 99
    await harness.session.definitions.on_answer(unknown_token, [Location(uri, 0)])

    question = harness.look_up()
    harness.session.close(harness.uri)
    await harness.session.definitions.on_answer(question.token, [None, Location(uri, 0)])

    harness.session.open(harness.uri, "python", _LINE)
    assert harness.definitions == []


async def test_only_the_last_questions_wait_for_an_answer(harness: Harness) -> None:
    uri = harness.write("prices.py", _DEFINITION)
    first = harness.look_up()
    for _ in range(MAX_PENDING):
        harness.clock.now_s += _AFTER_MAX_AGE_S
        harness.look_up()

    await harness.session.definitions.on_answer(first.token, [None, Location(uri, 0)])

    assert harness.definitions == []


async def test_nothing_is_asked_or_sent_while_the_setting_is_off(harness: Harness) -> None:
    await harness.answer(None, Location(harness.write("prices.py", _DEFINITION), 0))

    harness.session.set_up(Settings(definitions=False), None)
    harness.clock.now_s += _AFTER_MAX_AGE_S
    harness.look_up()

    assert len(harness.questions) == 1
    assert harness.definitions == []


async def test_nothing_is_asked_for_an_excluded_file(tmp_path: Path) -> None:
    harness = Harness(tmp_path, excluded=("a.py",))

    harness.session.look_up_definitions(harness.uri, Position(0, len(_LINE)))

    assert harness.questions == []
