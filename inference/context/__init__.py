"""Assembly of prompts: from the client's texts to token IDs. Pure, except for the tokenizer."""
