"""What protocols share about texts: citations, sentences, cleaning and relevance."""
