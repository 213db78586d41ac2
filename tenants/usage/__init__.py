"""Usage records and the figures that are made of them."""
