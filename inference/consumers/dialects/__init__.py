"""HTTP protocols of other products, one module each."""
