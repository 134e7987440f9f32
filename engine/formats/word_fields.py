"""Links that a Word file has as fields, in the form that mammoth reads: a complex field with a quoted address."""

import re

from lxml import etree

from adjudge.fetchers.office import repacked

__all__ = ["with_plain_links"]

_WORD = re.compile(r'"([^"]*)"|(\S+)')
_TAKES_A_VALUE = frozenset({"\\l", "\\o", "\\t"})


def with_plain_links(body: bytes) -> bytes:
    """The text of a Word file, its links without switches and its simple fields as complex ones."""
    return repacked(body, _part)


def _part(name: str, body: bytes) -> bytes:
    if b"fldSimple" not in body and b"instrText" not in body:
        return body
    try:
        root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return body  # the reader says what is wrong with it
    word = f"{{{etree.QName(root).namespace}}}"
    kind_of = f"{word}fldCharType"

    def run(name: str, kind: str = "", text: str | None = None) -> etree._Element:
        made = etree.Element(f"{word}r")
        sign = etree.SubElement(made, f"{word}{name}", {kind_of: kind} if kind else None)
        sign.text = text
        return made

    for simple in list(root.iter(f"{word}fldSimple")):
        simple.tag = f"{word}smartTag"  # what a reader looks through
        simple.insert(0, run("fldChar", "begin"))
        simple.insert(1, run("instrText", text=simple.get(f"{word}instr")))
        simple.insert(2, run("fldChar", "separate"))
        simple.append(run("fldChar", "end"))
    fields: list[list[etree._Element]] = []
    for one in root.iter(f"{word}fldChar", f"{word}instrText"):
        kind = one.get(kind_of)
        if kind == "begin":
            fields.append([])
        elif fields and kind is None:
            fields[-1].append(one)
        elif fields and kind == "separate" and fields[-1]:
            first, *others = fields[-1]
            first.text = _plain("".join(part.text or "" for part in fields[-1]))
            for part in others:
                part.text = ""
        elif fields and kind == "end":
            fields.pop()
    return bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))


def _plain(instruction: str) -> str:
    """A field's instruction; if it is a link, with its address and place alone."""
    words = [quoted or bare for quoted, bare in _WORD.findall(instruction)]
    if not words or words[0].upper() != "HYPERLINK":
        return instruction
    address, place, rest = "", "", iter(words[1:])
    for word in rest:
        value = next(rest, "") if word in _TAKES_A_VALUE else ""
        if word == "\\l":
            place = value
        elif not word.startswith("\\"):
            address = address or word
    if not address:
        return f'HYPERLINK \\l "{place}"'
    return f'HYPERLINK "{address}#{place}"' if place else f'HYPERLINK "{address}"'
