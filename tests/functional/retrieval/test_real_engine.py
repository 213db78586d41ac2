"""The real embedding engine: what is near in meaning is near in the index."""

from dataclasses import replace
from typing import Final

import pytest

from tenants.retrieval.embed import EmbeddingEngine
from tests.fakes.embeddings import serving_embeddings
from tests.functional.retrieval.conftest import Pooling
from tests.integration.retrieval.library import Library, make_library
from tests.stack.services import Services

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("database")]

INVOICES: Final = '''\
def total_of(invoice):
    """The amount that the customer has to pay, taxes included."""
    amount = 0
    for line in invoice.lines:
        amount += line.price * line.quantity
    amount += amount * invoice.tax_rate
    if invoice.discount:
        amount -= invoice.discount
    return round(amount, 2)
'''
SOCKETS: Final = '''\
def read_frame(connection):
    """One message of the wire protocol: a length, then as many bytes."""
    header = connection.recv(4)
    if not header:
        raise ConnectionError("closed by peer")
    length = int.from_bytes(header, "big")
    chunks = []
    while length:
        chunks.append(connection.recv(length))
        length -= len(chunks[-1])
    return b"".join(chunks)
'''
IMAGES: Final = '''\
def blur(pixels, radius):
    """A box filter over a bitmap."""
    width, height = pixels.shape
    result = pixels.copy()
    for x in range(width):
        for y in range(height):
            window = pixels[x - radius : x + radius, y - radius : y + radius]
            result[x, y] = window.mean()
    return result
'''


@pytest.fixture
def library(services: Services, pooling: Pooling) -> Library:
    with serving_embeddings() as unused:
        made = make_library("initech", unused)
    engine = EmbeddingEngine(pooling.url, model=pooling.model)
    return replace(made, desk=replace(made.desk, embedder=engine))


def test_what_is_near_in_meaning_is_found_before_what_is_not(library: Library) -> None:
    for path, text in (("net.py", SOCKETS), ("pay.py", INVOICES), ("image.py", IMAGES)):
        library.keep(path, text)

    money = library.ask("# how much does the shopping cart cost altogether\ndef cart_cost(")
    network = library.ask("# send a packet to the server over tcp\ndef send(sock")

    assert money[0].path == "pay.py"
    assert network[0].path == "net.py"
