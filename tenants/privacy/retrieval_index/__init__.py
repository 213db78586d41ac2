"""The retrieval index: encrypted chunks of customers' files, stored only with consent."""
