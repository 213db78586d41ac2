"""The retrieval index: encrypted chunks of the files that customers' policies allow."""
