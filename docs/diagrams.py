"""Mermaid diagrams drawn while the site is built, so that no page loads the code for it from elsewhere."""

import re
from hashlib import sha256

import mmdr

FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STYLE = (
    "%%{init: {'theme': 'neutral', 'look': 'classic', "
    "'sequence': {'mirrorActors': false, 'actorMargin': 16, 'width': 160, 'wrap': true}}}%%\n"
)


def drawn(markdown: str) -> str:
    """A page with its diagrams as SVG, dark on light in either scheme."""
    return FENCE.sub(lambda found: _figure(found[1]), markdown)


def _figure(source: str) -> str:
    name = f"diagram-{sha256(source.encode()).hexdigest()[:8]}"  # its styles go by this id
    svg = mmdr.render(STYLE + source).svg().replace("merman", name).replace("\n", " ")
    paper = "--md-default-bg-color: #fff; --more: rgb(0 0 0 / .3); background-color: #fff"
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="Diagram" style="{paper}">'
        f'<div style="min-width: 960px">{svg}</div></div>'
    )
