"""The index of customers' files, by consent: chunked, sealed, found by likeness."""
