"""The stages that face the client: receive, authenticate, admit and stream."""
