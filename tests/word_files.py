"""Parts of Word files that python-docx does not write itself."""

import docx
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

__all__ = ["add_link"]


def add_link(paragraph: docx.text.paragraph.Paragraph, text: str, url: str) -> None:
    """Add a link to the end of a paragraph."""
    related = paragraph.part.relate_to(url, docx.opc.constants.RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link, run, words = OxmlElement("w:hyperlink"), OxmlElement("w:r"), OxmlElement("w:t")
    link.set(qn("r:id"), related)
    words.text = text
    run.append(words)
    link.append(run)
    paragraph._p.append(link)
