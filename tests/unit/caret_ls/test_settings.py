"""Settings from the editor, the environment and a file."""

from pathlib import Path

import pytest

from caret_ls.settings import DEFAULT_GATEWAY_URL, Settings, config_folder, read_settings


def write_config(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text)
    return file


def test_without_settings_the_defaults_with_a_local_gateway_apply(tmp_path: Path) -> None:
    assert read_settings({}, tmp_path / "none.toml", None) == (Settings(), [])
    assert Settings().gateway_url == DEFAULT_GATEWAY_URL
    assert DEFAULT_GATEWAY_URL.startswith("http://127.0.0.1:")


def test_the_editor_overrides_the_environment_and_the_environment_the_file(tmp_path: Path) -> None:
    file = write_config(
        tmp_path,
        'gateway_url = "https://a"\ndebounce_ms = 100\nexcluded_globs = ["x/*"]\nenabled = false',
    )
    environment = {"CARET_GATEWAY_URL": "https://b", "CARET_LS_DEBOUNCE_MS": "200"}

    settings, problems = read_settings(environment, file, {"gateway_url": "https://c/"})

    assert problems == []
    assert settings == Settings(
        gateway_url="https://c", debounce_ms=200, excluded_globs=("x/*",), enabled=False
    )


def test_environment_variables_may_be_words_and_lists(tmp_path: Path) -> None:
    environment = {
        "CARET_LS_COMPLETE_IN_COMMENTS": "yes",
        "CARET_LS_DISABLED_LANGUAGES": "Markdown, text",
    }

    settings, _ = read_settings(environment, tmp_path / "none.toml", None)

    assert settings == Settings(complete_in_comments=True, disabled_languages=("markdown", "text"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gateway_url", "ftp://a"),
        ("gateway_url", 7),
        ("debounce_ms", -1),
        ("debounce_ms", "soon"),
        ("debounce_ms", True),
        ("complete_in_strings", "perhaps"),
        ("excluded_globs", 7),
        ("disabled_languages", [7]),
        ("next_edit", "perhaps"),
        ("share_accepted_text", {}),
    ],
)
def test_an_invalid_value_is_reported_and_the_others_apply(
    tmp_path: Path, name: str, value: object
) -> None:
    settings, problems = read_settings({}, tmp_path / "none.toml", {name: value, "prefetch": False})

    assert problems == [name]
    assert settings == Settings(prefetch=False)


def test_an_invalid_file_is_reported_and_the_environment_applies(tmp_path: Path) -> None:
    file = write_config(tmp_path, "debounce_ms = = 1")
    environment = {"CARET_LS_DEBOUNCE_MS": "90"}

    settings, problems = read_settings(environment, file, None)

    assert problems == [str(file)]
    assert settings.debounce_ms == 90


def test_editor_options_that_are_no_object_are_ignored(tmp_path: Path) -> None:
    environment = {"CARET_LS_DEBOUNCE_MS": "90"}

    settings, problems = read_settings(environment, tmp_path / "none.toml", "no object")

    assert problems == []
    assert settings.debounce_ms == 90


def test_unknown_editor_settings_are_ignored(tmp_path: Path) -> None:
    assert read_settings({}, tmp_path / "none.toml", {"trace": "off"}) == (Settings(), [])


def test_the_settings_folder_follows_xdg(tmp_path: Path) -> None:
    assert config_folder({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "caret"
    assert config_folder({}) == Path.home() / ".config" / "caret"
