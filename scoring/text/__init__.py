"""What protocols share about texts.

aside           reads long texts in worker processes, beside the event loop (`worker` is the process)
blocks          a report as lines of known kinds
citation_marks  the marks in a line, and long texts in pieces
sentences       text with its marks lifted out
citations       what a report cites: facts, references
cleaning        a report without its marks and reference lists
relevance       the parts of a long text that are most likely about a statement
"""
