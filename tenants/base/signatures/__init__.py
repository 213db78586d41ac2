"""Signatures of this installation: its keys, and the command line that verifies files offline."""
