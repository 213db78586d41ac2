"""The URLs from which the console and the workers read the metrics of gateways."""

import pytest

from caret.foundation.environment import BadSetting
from caret.settings.service_urls import gateway_metrics_from_environment


@pytest.mark.parametrize(
    ("environment", "urls"),
    [
        ({}, ["http://127.0.0.1:8403"]),  # the default port
        ({"CARET_METRICS_PORT": "9000"}, ["http://127.0.0.1:9000"]),
        ({"CARET_METRICS_PORT": "0"}, []),  # 0: the gateway on this machine serves no metrics
        (
            {"CARET_METRICS_PORT": "0", "CARET_GATEWAY_METRICS_URLS": "http://a:1, http://b:1"},
            ["http://a:1", "http://b:1"],
        ),
        ({"CARET_GATEWAY_METRICS_URLS": ""}, []),
    ],
)
def test_the_urls_are_those_of_the_setting_or_else_that_of_the_gateway_on_this_machine(
    environment: dict[str, str], urls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CARET_METRICS_PORT", "CARET_GATEWAY_METRICS_URLS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert gateway_metrics_from_environment() == urls


def test_the_error_about_an_invalid_port_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARET_METRICS_PORT", "none")

    with pytest.raises(BadSetting, match="CARET_METRICS_PORT"):
        gateway_metrics_from_environment()
