"""Tables, and how they are drawn: on a terminal, as HTML, as Markdown, and as files."""
