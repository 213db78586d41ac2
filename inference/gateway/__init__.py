"""The stages that face the client: receive, authenticate, admit, stream; and the wire protocol."""
