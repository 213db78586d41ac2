"""Files that browsers keep: sent packed to those who take it so."""

import gzip

import pytest
from django.test import Client

from console.assets import asset_url
from console.kept_file import kept_file
from console.operators.assets import url_of


@pytest.mark.parametrize("taken", ["gzip", "br, gzip", "GZIP;q=0.5", "gzip, deflate, br, zstd"])
def test_it_is_packed_for_who_takes_that(taken: str) -> None:
    plain = Client().get(asset_url("console.css"))

    packed = Client().get(asset_url("console.css"), HTTP_ACCEPT_ENCODING=taken)

    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) < len(plain.content) / 2


@pytest.mark.parametrize("taken", ["", "identity", "br", "gzip;q=0", "gzip; q=0.0, br", "xgzip"])
def test_it_is_plain_for_everybody_else(taken: str) -> None:
    answer = Client().get(asset_url("console.css"), HTTP_ACCEPT_ENCODING=taken)

    assert "Content-Encoding" not in answer
    assert b":root" in answer.content


def test_a_cache_between_keeps_both(client: Client) -> None:
    for taken in ("gzip", "identity"):
        answer = client.get(asset_url("console.css"), HTTP_ACCEPT_ENCODING=taken)

        assert "Accept-Encoding" in answer["Vary"]


def test_so_are_the_operators_files() -> None:
    answer = Client().get(url_of("css/styles.css"), HTTP_ACCEPT_ENCODING="gzip")

    assert answer["Content-Encoding"] == "gzip"
    assert "immutable" in answer["Cache-Control"]


def test_what_would_not_be_smaller_is_left_as_it_is() -> None:
    assert kept_file("dot.woff2", b"wOF2").packed is None
