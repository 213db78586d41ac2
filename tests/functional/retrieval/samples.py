"""Three source files about different subjects, for tests of retrieval."""

from typing import Final

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
