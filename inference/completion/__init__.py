"""The nouns of the sentence: what one stage hands to the next."""
