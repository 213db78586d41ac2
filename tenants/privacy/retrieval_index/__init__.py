"""The retrieval index of customers' files: by consent, chunked, encrypted."""
