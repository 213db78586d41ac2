"""A client of the gateway: the stream protocol, and the command line over it."""
