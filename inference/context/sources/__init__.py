"""Other files that go into a prompt: selected, ranked and outlined."""
