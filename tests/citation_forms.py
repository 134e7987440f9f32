"""One report in the forms that systems write: two statements that cite, and one that does not.

"The mill grinds oats" cites the mill's page, "Barges carry ninety tonnes" those of the barges and the weights, and "No
bridge crosses the river" none.
"""

MILL, BARGES, WEIGHTS = (
    "https://mill.example/oats",
    "https://barges.example/load?a=1&b_c=2",
    "https://weights.example/tonne_2",
)
PAIRS = {
    ("The mill grinds oats", MILL),
    ("Barges carry ninety tonnes", BARGES),
    ("Barges carry ninety tonnes", WEIGHTS),
}
TITLES = ("Mill register", "Barge ledger", "Book of weights")


def _marked(one: str, two: str, three: str, *, glue: str = "", space: str = " ", stop: str = ".") -> str:
    """The report with a mark for each source, before the full stop."""
    return (
        f"# The river\n\nThe mill grinds oats{space}{one}{stop} "
        f"Barges carry ninety tonnes{space}{two}{glue}{three}{stop} "
        "No bridge crosses the river.\n\n"
    )


def _listed(first: str, second: str, third: str, title: str = "## References") -> str:
    urls = (MILL, BARGES, WEIGHTS)
    named = zip((first, second, third), TITLES, urls, strict=True)
    return f"{title}\n\n" + "\n".join(f"{label} {work}. {url}" for label, work, url in named) + "\n"


_NUMBERS = _marked("[1]", "[2]", "[3]")
_APA = (
    f"Ostrevan, A. (2021). *Mill register*. Mill. {MILL}\n\nQuell, B. (2023). *Barge ledger*. {BARGES}\n\n"
    f"Tann, C. (2022). *Book of weights*. {WEIGHTS}\n"
)

NUMBERS_AND_LISTS = {
    "numbers in brackets": _NUMBERS + _listed("[1]", "[2]", "[3]"),
    "numbers in parentheses": _marked("(1)", "(2, 3)", "") + _listed("(1)", "(2)", "(3)"),
    "circled numbers": _marked("①", "②", "③", space="") + _listed("①", "②", "③"),
    "list in German": _NUMBERS + _listed("1.", "2.", "3.", "## Quellen"),
    "list in Russian": _NUMBERS + _listed("1.", "2.", "3.", "## Источники"),
    "list in Chinese": _NUMBERS + _listed("1.", "2.", "3.", "## 信息溯源"),
    "list under a title that names none": _NUMBERS + _listed("1.", "2.", "3.", "## What we read"),
    "list with colons": _NUMBERS + f"## References\n\n1: {MILL}\n2: {BARGES}\n3: {WEIGHTS}\n",
    "list as a table": (
        _marked("[S01]", "[S02]", "[S03]")
        + "## Register\n\n| ID | Title | URL | Checked |\n|---|---|---|---|\n"
        + "".join(f"| S0{n} | A work | {url} | yes |\n" for n, url in enumerate((MILL, BARGES, WEIGHTS), 1))
    ),
    "entries with words for labels": (
        _marked("[Mill book]", "[Ledger 2023]", "[#weights]")
        + "## Read\n\n- **Mill book**: Mill register. "
        + f"{MILL}\n- **Ledger 2023** — Barge ledger. {BARGES}\n- **#weights**: Book of weights. {WEIGHTS}\n"
    ),
    "labels in bold brackets": _marked("[S1]", "[S2]", "[S3]")
    + _listed("- **[S1]**", "- **[S2]**", "- **[S3]**"),
    "labels in parentheses": _marked("(S1)", "(S2, S3)", "") + _listed("S1:", "S2:", "S3:"),
    "labels in other letters": _marked("[И1]", "[И2]", "[И3]") + _listed("И1:", "И2:", "И3:", "## Прочитано"),
    "words in front of numbers": _marked("[Fuente 1]", "[Fuentes 2, 3]", "") + _listed("1.", "2.", "3."),
    "words in parentheses": _marked("(Belege 1)", "(Belege 2, 3)", "")
    + _listed("1.", "2.", "3.", "## Belege"),
    "places in the works": _marked("[1, p. 4]", "[2, §3; 3: 12–14]", "") + _listed("[1]", "[2]", "[3]"),
    "raised numbers of Pandoc": _marked("^1^", "^2,3^", "", space="") + _listed("1.", "2.", "3."),
    "raised numbers of LaTeX": _marked("$^{1}$", "$^{2,3}$", "", space="") + _listed("1.", "2.", "3."),
    "raised brackets": (
        _marked("<sup>[1]</sup>", "<sup>[2]</sup>", "<sup>[3]</sup>", space=".", stop="")
        + _listed("[1]", "[2]", "[3]")
    ),
    "numbers in tags": (
        _marked("<cite>1</cite>", '<ref id="2"/>', "<citation>3</citation>") + _listed("[1]", "[2]", "[3]")
    ),
    "cards of a chat": (
        _marked(
            *(
                '<grok:render card_id="a" card_type="citation_card" type="render_inline_citation">'
                f'<argument name="citation_id">{n}</argument></grok:render>'
                for n in (1, 2, 3)
            )
        )
        + _listed("1.", "2.", "3.")
    ),
    "list without a title": _NUMBERS
    + _listed("1.", "2.", "3.", "The works that this rests on, as they were read"),
    "list below a heading of HTML": _NUMBERS + _listed("1.", "2.", "3.", "<h2>Gelesen</h2>"),
    "list of headings": (
        _NUMBERS + f"## Quellen\n\n### [1] Mill register\n{MILL}\n\n### [2] Barge ledger\n{BARGES}\n\n"
        f"### [3] Book of weights\n**URL:** {WEIGHTS}\n"
    ),
    "table with labels in a later cell": (
        _NUMBERS
        + "## Quellen\n\n| Work | Mark | URL |\n|---|---|---|\n"
        + "".join(f"| A work | [{n}] | {url} |\n" for n, url in ((2, BARGES), (1, MILL), (3, WEIGHTS)))
    ),
    "lines of bare numbers": (
        "# The river\n\nThe mill grinds oats.\nSource: 1\n\nBarges carry ninety tonnes.\n*Quellen: 2, 3*\n\n"
        "No bridge crosses the river.\n\n" + _listed("1.", "2.", "3.")
    ),
    "numbers in lines above the list": (
        "# The river\n\nNo bridge crosses the river.\n\nThe mill grinds oats.\n\nQuelle: [1]\n\n"
        "Barges carry ninety tonnes.\n\nQuelle: [2], [3]\n\n" + _listed("[1]", "[2]", "[3]", "## Quellen")
    ),
    "list without schemes": _NUMBERS + _listed("1.", "2.", "3.").replace("https://", ""),
    "address on the next line": (
        _marked("[1][11]", "[2]", "[3]")
        + f"[1] [11] Mill register\n\n{MILL}\n\n[2] Barge ledger\n\n{BARGES}\n\n[3] Book of weights\n\n{WEIGHTS}\n"
    ),
    "list behind a ruler": _NUMBERS + _listed("1.", "2.", "3.", "---"),
    "list in parts": _NUMBERS
    + _listed("1.", "2.", "3.", "## Sources\n\n### Registers").replace("3.", "\n**Books**\n3."),
    "list whose numbers lead back": _NUMBERS
    + "## Works\n\n"
    + "".join(
        f"- [[{n}](#mark-{n}) **A work**]({url})\n" for n, url in enumerate((MILL, BARGES, WEIGHTS), 1)
    ),
    "numbers behind words": (
        "# The river\n\nThe mill grinds oats 1, as of old. Barges carry ninety tonnes in **summer**.2 It is "
        "written (Barges carry ninety tonnes) 3. No bridge crosses the river.\n\n"
    )
    + _listed("1.", "2.", "3.", "#### **Works cited**"),
    "several numbers behind a word": _marked("1", "2, 3", "")
    + _listed("1.", "2.", "3.", "#### **Works cited**"),
    "numbers behind plurals": (
        "# The river\n\nThe mill grinds oats in two steps 1. Barges carry ninety tonnes in all sessions 2. "
        "Barges carry ninety tonnes at all ages 3. No bridge crosses the river in Steps 2, 3 and 1.\n\n"
    )
    + _listed("1.", "2.", "3.", "## Works cited"),
    "several numbers without commas": _marked("1", "2 3", "") + _listed("1.", "2.", "3.", "## Fuentes"),
    "numbers close behind words": (
        _marked("1", "2", "", space="").replace(
            "No bridge", "Barges carry ninety tonnes (as before)3. No bridge"
        )
        + _listed("1.", "2.", "3.", "## Works cited")
    ),
    "escaped addresses": _NUMBERS + _listed("1.", "2.", "3.").replace("_", "\\_").replace("&", "\\&"),
    "numbers in braces": _marked("{1}", "{2,", "3}") + _listed("{1}", "{2}", "{3}"),
    "numbers in angle brackets": _marked("<1>", "<2,", "3>") + _listed("<1>", "<2>", "<3>"),
    "numbers behind number signs": _marked("[#1]", "[#2]", "[#3]") + _listed("#1", "#2", "#3"),
    "numbers behind carets": _marked("^1", "^2", ",^3", space="") + _listed("1.", "2.", "3."),
    "small raised numbers with a line": _marked("¹", "²", "⁻³", space="") + _listed("1.", "2.", "3."),
    "numbers joined by and": _marked("[1]", "[2 and ", "3]") + _listed("[1]", "[2]", "[3]"),
    "numbers between strokes": _marked("[1]", "[2|", "3]") + _listed("[1]", "[2]", "[3]"),
    "the word reference in front": (
        _marked("(see reference 1)", "(see reference 2) (see reference 3)", "") + _listed("1.", "2.", "3.")
    ),
    "numbers in italic parentheses": _marked("*(1)*", "*(2)*", " *(3)*") + _listed("1.", "2.", "3."),
    "citations of LaTeX": (
        _marked("\\cite{mill}", "\\cite{barge,weight}", "")
        + "\\begin{thebibliography}{9}\n"
        + _listed("\\bibitem{mill}", "\\bibitem{barge}", "\\bibitem{weight}", "").lstrip()
        + "\\end{thebibliography}\n"
    ),
    "citations of LaTeX in parentheses": (
        _marked("~\\citep[p.~4]{mill}", "~\\citep{barge, weight}", "", space="")
        + _listed("\\bibitem{mill}", "\\bibitem{barge}", "\\bibitem{weight}", "\\section*{Works}")
    ),
    "footnotes of reStructuredText": (
        _marked("[#a]_", "[#b]_", " [#c]_") + _listed(".. [#a]", ".. [#b]", ".. [#c]", "")
    ),
    "list in a code block": _NUMBERS + _listed("[1]", "[2]", "[3]", "## References\n\n```") + "```\n",
    "list in JSON": _NUMBERS
    + "## References\n\n```json\n["
    + ",\n".join(
        f'{{"id": {n}, "title": "A work", "url": "{url}"}}'
        for n, url in enumerate((MILL, BARGES, WEIGHTS), 1)
    )
    + "]\n```\n",
    "list of numbered links": (
        _marked("[[1]]", "[[2]]", "[[3]]", space="") + f"[[1]]({MILL})\n[[2]]({BARGES})\n[[3]]({WEIGHTS})\n"
    ),
    "list on a line of its own": (
        _NUMBERS + f"**Sources:** (1) Mill register {MILL} (2) Barge ledger {BARGES} (3) Weights {WEIGHTS}\n"
    ),
    "list with words between": _NUMBERS
    + _listed("1.", "2.", "3.", "## References\n\nPrimary (the council):\n"),
    "list of notes on works, in parts": _NUMBERS
    + _listed("1.", "2.", "3.")
    + "\n## Sources\n\n### News\n\n- [Mill news](https://news.example/1) (2024-04-07) - a first look at the mill\n"
    "- [Barge news](https://news.example/2) - Verified for May\n",
    "statements below a name of works": (
        f"# The river\n\n**Literature (two works):**\n\n- The mill grinds oats[[6]]({MILL}). Nobody knows why.\n"
        f"- Barges carry ninety tonnes[[7]]({BARGES})[[8]]({WEIGHTS}). They are slow.\n\n**Films (one):**\n\n"
        "- No bridge crosses the river.\n"
    ),
    "footnotes in a table": (
        "# The river\n\n| What | Year |\n|---|---|\n| The mill grinds oats[^1] | 2024 |\n"
        "| Barges carry ninety tonnes[^2][^3] | 2024 |\n| No bridge crosses the river | 2024 |\n\n"
        + _listed("[^1]:", "[^2]:", "[^3]:", "")
    ),
}
LABELS = {
    "author without a year": (
        _marked("(Ostrevan, n.d.)", "(Quell, 2023; Tann, 2022)", "")
        + f"## References\n\n{_APA.replace('2021', 'n.d.')}"
    ),
    "author and page": (
        _marked("(Ostrevan 12)", "(Quell and Li 4-5; Tann 7)", "")
        + "## Works Cited\n\n"
        + f"Ostrevan, Ada. *Mill register*. Mill, 2021, {MILL}.\n\nQuell, Bo, and Wei Li. *Barge ledger*. {BARGES}.\n\n"
        + f'Tann, Cy. "Book of weights." *Tonne*, 2022, {WEIGHTS}.\n'
    ),
    "raised numbers in front of entries": (
        _marked("¹", "²˒³", "", space="")
        + f"---\n\n¹ Mill — {MILL}\n² Barges — {BARGES}\n³ Weights — {WEIGHTS}\n"
    ),
    "references of AsciiDoc": (
        _marked("<<mill>>", "<<barges,Barges 2023>>", f"footnote:[Weights, {WEIGHTS}]")
        + f"== References\n\n* [[[mill]]] Mill register. {MILL}\n* [[[barges]]] Barge ledger. {BARGES}\n"
    ),
    "letters and numbers": _marked("[S1]", "[S2]", "[S3]")
    + _listed("- [S1]", "- [S2]", "- [S3]", "## Sources"),
    "letter, dash, number": _marked("[A-0]", "[B-0]", "[C-0]") + _listed("[A-0]", "[B-0]", "[C-0]"),
    "author and year in one word": (
        _marked("[Ostrevan2021]", "[Quell2023]", "[Tann2022]")
        + _listed("[Ostrevan2021]", "[Quell2023]", "[Tann2022]")
    ),
    "kind of source": _marked("[web:1]", "[web:2]", "[web:3]") + _listed("[web:1]", "[web:2]", "[web:3]"),
    "the word source": (
        _marked("[Source 1]", "[Source 2, Source 3]", "")
        + _listed("Source 1:", "Source 2:", "Source 3:", "## Sources")
    ),
    "footnotes with two carets": _marked("[^1^]", "[^2^]", "[^3^]") + _listed("[^1^]", "[^2^]", "[^3^]"),
    "author and year": _marked("(Ostrevan, 2021)", "(Quell, 2023; Tann, 2022)", "")
    + f"## References\n\n{_APA}",
    "authors and year without a comma": (
        _marked("(Ostrevan et al. 2021)", "(Quell & Norr, 2023; Tann et al. 2022)", "")
        + f"## Bibliography\n\n{_APA}"
    ),
    "author in the sentence": (
        "As Ostrevan (2021) wrote: The mill grinds oats.\n\nAs Quell (2023) and Tann (2022) wrote: Barges carry ninety "
        f"tonnes.\n\nNo bridge crosses the river.\n\n## References\n\n{_APA}"
    ),
    "reference links": (
        _marked("([Mill][1])", "([Barges][2], [Weights][3])", "")
        + f'[1]: {MILL} "Mill register"\n[2]: {BARGES} "Barge ledger"\n[3]: <{WEIGHTS}>\n'
    ),
}
LINKS = {
    "numbered links and their entries": (
        _marked(*(f"[\\[{n}\\]]({url})" for n, url in enumerate((MILL, BARGES, WEIGHTS), 1)), space="")
        + f"[\\[1\\]]({MILL}) [\\[4\\]]({MILL}) Mill register of the long river and its valleys\\\n<{MILL}>\n\n"
        + f"[\\[2\\]]({BARGES}) Barge ledger of the upper river\n<{BARGES}>\n\n"
        + f"[\\[3\\]]({WEIGHTS}) Book of weights for all who sell by the tonne\n<{WEIGHTS}>\n"
    ),
    "links of AsciiDoc": _marked(f"{MILL}[Mill]", f"{BARGES}[Barges]", f" {WEIGHTS}[Weights]"),
    "notes of a wiki": _marked(
        f"<ref>Mill {MILL}</ref>", f"<ref>[{BARGES} Barges]</ref>", f"<ref>{WEIGHTS}</ref>", space=""
    ),
    "works of a wiki behind the full stop": _marked(
        f"<ref>{{{{cite web |url={MILL} |title=Mill}}}}</ref>",
        f"<ref>[{BARGES} Barges]</ref>",
        f"<ref name=w>{{{{cite book |title=W |url={WEIGHTS}}}}}</ref>",
        space=".",
        stop="",
    ),
    "names of addresses of reStructuredText": (
        _marked("`Mill`_", "`the barges`_", " `Weights`_")
        + f".. _Mill: {MILL}\n.. _the barges: {BARGES}\n.. _weights: {WEIGHTS}\n"
    ),
    "addresses in brackets": _marked(f"[{MILL}]", f"[{BARGES}]", f"[{WEIGHTS}]"),
    "links of Org": _marked(f"[[{MILL}][Mill]]", f"[[{BARGES}][Barges]]", f" [[{WEIGHTS}][Weights]]"),
    "links of Slack": _marked(f"<{MILL}|Mill>", f"<{BARGES}|Barges>", f" <{WEIGHTS}|Weights>"),
    "links of reStructuredText": _marked(f"`Mill <{MILL}>`_", f"`B <{BARGES}>`_", f" `W <{WEIGHTS}>`_"),
    "links of LaTeX": _marked(f"\\href{{{MILL}}}{{Mill}}", f"\\url{{{BARGES}}}", f" \\url{{{WEIGHTS}}}"),
    "links of BBCode": _marked(f"[url={MILL}]M[/url]", f"[url={BARGES}]B[/url]", f" [url={WEIGHTS}]W[/url]"),
    "links with attributes": _marked(
        f"[M]({MILL}){{target=_blank}}", f"[B]({BARGES}){{.x}}", f" [W]({WEIGHTS})"
    ),
    "tags with addresses": _marked(
        f'<cite href="{MILL}">M</cite>', f'<ref url="{BARGES}"/>', f" &lt;{WEIGHTS}&gt;"
    ),
    "guillemets": _marked(f"«{MILL}»", f"«{BARGES}»", f" «{WEIGHTS}»"),
    "addresses behind the full stop": _marked(
        f"<{MILL}>", f"<{BARGES}>", f" <{WEIGHTS}>", space=". ", stop=""
    ).replace(" No bridge crosses the river.", "\n\nNo bridge crosses the river."),
    "works in parentheses behind it": _marked(
        f"(Mill book: {MILL})", f"(Barge ledger, {BARGES})", f" (Weights – {WEIGHTS})", space=". ", stop=""
    ),
    "marks in bold behind the sentence": _marked(
        f"**[M]({MILL})**", f"*[B]({BARGES})*", f" **[W]({WEIGHTS})**", space=". ", stop=""
    ).replace(" No bridge crosses the river.", "\n\nNo bridge crosses the river."),
    "links in items of statements": (
        f"# The river\n\n- The mill grinds oats.\n  - [The mill's own register of the valley]({MILL})\n"
        f"- Barges carry ninety tonnes.\n  - [Ledger]({BARGES})\n  - [Book]({WEIGHTS})\n"
        "- No bridge crosses the river.\n"
    ),
    "lines of arrows in items": (
        f"# The river\n\n- The mill grinds oats.\n  → [Mill]({MILL})\n- Barges carry ninety tonnes.\n"
        f"  🔗 [Ledger]({BARGES}), [Book]({WEIGHTS})\n- No bridge crosses the river.\n"
    ),
    "quoted sources in items": (
        f"# The river\n\n- No bridge crosses the river.\n- The mill grinds oats.\n  > Source: [Mill]({MILL})\n"
        f"- Barges carry ninety tonnes.\n  > Source: [Ledger]({BARGES}), [Book]({WEIGHTS})\n"
    ),
    "addresses in code": _marked(f"`{MILL}`", f"`{BARGES}`", f" `{WEIGHTS}`"),
    "possessives": _marked(f"by {MILL}'s count", f"by {BARGES}'s", f" and {WEIGHTS}’s"),
    "entities": _marked(f"([Mill]({MILL}))", f"([B]({BARGES.replace('&', '&amp;')}),", f"[W]({WEIGHTS}))"),
    "invisible characters": _marked(f"{MILL}\u200b", f"{BARGES}\u200b", f" {WEIGHTS}\u200b"),
}
_ANCHORS = (
    '<sup><a href="#r1">1</a></sup>',
    '<sup><a href="#r2">2</a></sup>',
    '<sup><a href="#r3">3</a></sup>',
)
HTML = {
    "HTML list": (
        _marked(*_ANCHORS, space="")
        + "## References\n\n<ol>\n"
        + "".join(
            f'<li id="r{n}"><a href="{url.replace("&", "&amp;")}">A work</a></li>\n'
            for n, url in enumerate((MILL, BARGES, WEIGHTS), 1)
        )
        + "</ol>\n"
    ),
    "HTML links": _marked(
        f'<a href="{MILL}">a</a>', f'<a href="{BARGES}">b</a>', f" <a href='{WEIGHTS}'>c</a>"
    ),
    "cited text in tags": (
        '# The river\n\n<cite id="S_1">The mill grinds oats</cite>. <cite id="S_2,S_3">Barges carry ninety tonnes'
        "</cite>. No bridge crosses the river.\n\n" + _listed("[S_1]", "[S_2]", "[S_3]")
    ),
    "hidden marks": (
        _NUMBERS
        + '<span style="display:none">Nobody sees that tonnes are heavy [1][2].</span>\n\n'
        + f"<!-- A note to oneself [3]. {MILL} -->\n\n"
        + _listed("[1]", "[2]", "[3]")
    ),
    "broken addresses": _NUMBERS + _listed("[1]", "[2]", "[3]").replace("example/", "example/\n"),
}
RESIDUE = (
    "[cite_start]The mill grinds oats[cite: 1, 2].",
    "The mill grinds oats. citeturn0search0turn2search5",
    "The mill grinds oats. \ue200cite\ue202turn0search0\ue202turn1view2\ue201",
    "The mill grinds oats :contentReference[oaicite:0]{index=0}.",
    "[span_1](start_span)The mill grinds oats.[span_1](end_span)",
    "The mill grinds oats【turn0search3†source】.",
    '<div style="visibility: hidden">Nobody sees it.</div>The mill grinds oats.<!-- [1] -->',
)
"""What chat pages leave in copies."""


def _blocks(form: str) -> str:
    """The report with `form` for each statement: what stands between "<" and ">" is there for each of its sources."""
    before, each, after = form.replace("<", "\0").replace(">", "\0").split("\0")
    found = ["# The river", ""]
    for said, urls in (("The mill grinds oats", [MILL]), ("Barges carry ninety tonnes", [BARGES, WEIGHTS])):
        works = "".join(each.replace("{url}", url) for url in urls)
        found.append(before.replace("{said}", said) + works + after.replace("{said}", said))
    return "\n".join(found) + "\n## Further\n\nNo bridge crosses the river.\n"


BESIDE = {
    "line of sources below a paragraph": _blocks("{said}.\n\n*Source:< [A work]({url});>*\n"),
    "line of sources below it, in German": _blocks("{said}.\n\n**Quellen:**< [Ein Werk]({url}),>\n"),
    "list of sources below a paragraph": _blocks("{said}.\n\nSources:\n<- [A work]({url})\n>"),
    "list of sources at the end of a chapter": _blocks(
        "## Chapter\n\n{said}.\n\nSources:\n\n<- [A work]({url})\n>"
    ),
    "addresses below a sentence": _blocks("{said}.\nSources:\n<{url}\n>"),
    "resource below a paragraph": _blocks("{said}.\n\n<- **Resource**: [A work]({url})\n>"),
    "sources below an item": _blocks("1. {said}.\n<   - Source: [A work]({url})\n>"),
    "sources below a table": _blocks(
        "| Place | Finding |\n|---|---|\n| River | {said} |\n\n*Source:< [A work]({url})>*\n"
    ),
    "column of links": _blocks("| Finding | Link |\n|---|---|\n| {said} |< [Works]({url})> |\n"),
    "column of links without a rule": _blocks(
        "| Place | Finding | Link |\n| River | {said} |< The works {url}> |\n"
    ),
    "card with a linked title": _blocks("**A work** (<[link]({url}) >)\n- {said}.\n"),
    "card with an address in its first item": _blocks("**A work**\n<- URL: [{url}]({url})\n>- {said}.\n"),
    "card below a heading": _blocks("### A work of note\n\n<Link: {url}  \n>\n* {said}.\n"),
    "findings with a number, and lists of sources": _blocks("**Finding 3.** {said}.\n\n<- Source: {url}\n>"),
    "notes set apart": (
        f"# The river\n\n> [!NOTE]\n> The mill grinds oats.\n> Source: {MILL}\n\n> [!NOTE]\n> Barges carry ninety "
        f"tonnes.\n> Sources: {BARGES}, {WEIGHTS}\n\nNo bridge crosses the river.\n"
    ),
    "names behind quotations": _blocks('"{said}." —< A work, {url}>\n'),
    "source in front of the finding": _blocks("**Source:**< {url}>\n**Finding:** {said}.\n"),
    "table in HTML": (
        "# The river\n\n<table><tr><th>Finding</th><th>Source</th></tr><tr><td>The mill grinds oats</td><td>"
        f'<a href="{MILL}">Mill</a></td></tr><tr><td>Barges carry ninety tonnes</td><td><a href="'
        f'{BARGES.replace("&", "&amp;")}">B</a> <a href="{WEIGHTS}">W</a></td></tr><tr><td>No bridge crosses the '
        "river</td><td></td></tr></table>\n"
    ),
    "lead-in": _blocks("According to< [A work]({url})>:\n\n- {said}.\n"),
    "lead-in of a table": _blocks(
        "As< [A work]({url})> has it:\n\n| Place | Finding |\n|---|---|\n| River | {said} |\n"
    ),
    "caption of a table": _blocks(
        "**Table 2.** What was seen (<[A work]({url}) >)\n\n| Place | Finding |\n|---|---|\n| River | {said} |\n"
    ),
    "heading of a table that is a source": _blocks(
        "### Source:< [A work]({url})>\n\n| Place | Finding |\n|---|---|\n| River | {said} |\n"
    ),
    "reference marks of Japanese": (
        _marked("※1", "※2", "※3", space="") + _listed("※1", "※2", "※3", "## 出典")
    ),
    "notes below a table with letters": (
        "# The river\n\n| Finding |\n|---|\n| The mill grinds oats<sup>a</sup> |\n"
        "| Barges carry ninety tonnes<sup>b, c</sup> |\n| No bridge crosses the river |\n\n"
        f"<sup>a</sup> Mill register, {MILL}  \n<sup>b</sup> {BARGES}  \n<sup>c</sup> {WEIGHTS}\n"
    ),
    "notes below a table with daggers": (
        "# The river\n\n| Finding |\n|---|\n| The mill grinds oats† |\n| Barges carry ninety tonnes‡§ |\n"
        f"| No bridge crosses the river |\n\n† Source: {MILL}\n\n‡ Source: {BARGES}\n\n§ Source: {WEIGHTS}\n"
    ),
    "quotations with their authors": (
        f"# The river\n\n> The mill grinds oats.\n> — *A miller, [A work]({MILL})*\n\n"
        "> Barges carry ninety tonnes.\n>\n> — Two bargees, "
        f"[A work]({BARGES}), [A work]({WEIGHTS})\n\nNo bridge crosses the river.\n"
    ),
    "inline notes": (
        f"# The river\n\nThe mill grinds oats.^[Mill register, {MILL}] Barges carry ninety tonnes."
        f"^[Barge ledger, {BARGES}]^[Book of weights, {WEIGHTS}] No bridge crosses the river.\n"
    ),
    "raised links behind the full stop": (
        f'# The river\n\nThe mill grinds oats.<sup><a href="{MILL}">1</a></sup> Barges carry ninety tonnes.'
        f'<sup><a href="{BARGES.replace("&", "&amp;")}">2</a></sup><sup><a href="{WEIGHTS}">3</a></sup> No bridge '
        "crosses the river.\n"
    ),
    "notes that lead back": (
        "# The river\n\nThe mill grinds oats.[\\[1\\]](#_ftn1) Barges carry ninety tonnes.[\\[2\\]](#_ftn2)"
        "[\\[3\\]](#_ftn3) No bridge crosses the river.\n\n"
        + "".join(
            f"[\\[{n}\\]](#_ftnref{n}) {title}, {url}\n\n"
            for n, title, url in zip((1, 2, 3), TITLES, (MILL, BARGES, WEIGHTS), strict=True)
        )
    ),
    "heading that is the statement": _blocks("### {said}.\n\n<{url}\n>"),
    "heading that is a source": _blocks("### Source:< [A work]({url})>\n\n{said}.\n"),
    "links behind the full stop": (
        f"# The river\n\nThe mill grinds oats. [Mill+1]({MILL}) Barges carry ninety tonnes. [Barges+1]({BARGES}) "
        f"[Weights+1]({WEIGHTS}) No bridge crosses the river.\n"
    ),
    "parentheses behind the full stop": (
        f"# The river\n\nThe mill grinds oats. ([Mill]({MILL})) Barges carry ninety tonnes. ([Barges]({BARGES}), "
        f"[Weights]({WEIGHTS})) No bridge crosses the river.\n"
    ),
    "links behind an item that ended": (
        f"# The river\n\n- The mill grinds oats. [Mill]({MILL})\n- Barges carry ninety tonnes. [[Barges]]({BARGES}), "
        f"[[Weights]]({WEIGHTS})\n- No bridge crosses the river.\n"
    ),
    "sentences that are links": (
        f"# The river\n\n## Banks\n\n- [The mill grinds oats for the valley]({MILL})\n\n## Water\n\n1. [Barges carry "
        f"ninety tonnes a day]({BARGES}) [(also)]({WEIGHTS})\n2. No bridge crosses the river.\n"
    ),
    "list on one line": _NUMBERS + f"References: [1] {MILL} [2] {BARGES} [3] {WEIGHTS}\n",
    "list between dots": _NUMBERS + f"**Sources:** [1] {MILL} • [2] {BARGES} • [3] {WEIGHTS}\n",
    "links that are sentences": (
        f"# The river\n\nIt is said so. [The mill grinds oats for all who live along the upper valley of the river]"
        f"({MILL}). Others say more. [Barges carry ninety tonnes of it down the river to the sea in a week]({BARGES})."
        f"[[3]]({WEIGHTS}) No bridge crosses the river.\n"
    ),
    "paragraphs that are links": (
        f"# The river\n\nIt is said so.\n\n[The mill grinds oats for all who live along the upper valley of the river]"
        f"({MILL}). Few ask.\n\n[Barges carry ninety tonnes of it down the river to the sea in a week]({BARGES})."
        f"[[3]]({WEIGHTS}) No bridge crosses the river.\n"
    ),
    "long list without a title, below text": (
        "# The river\n\nThe mill grinds oats.1 Barges carry ninety tonnes to us.2 Barges carry ninety tonnes in all.3 "
        "No bridge crosses the river.\n\nBarges carry ninety tonnes by day.4\n\n\n"
        + f"1. Mill register. {MILL}\n2. Barge ledger. {BARGES}\n3. Book of weights. {WEIGHTS}\n4. Why. {WEIGHTS}\n"
        + "".join(f"{n}. A ledger. https://w{n}.example/\n" for n in range(5, 13))
    ),
    "numbers behind short words": (
        "# The river\n\nThe mill grinds oats and lives on it.1 Barges carry ninety tonnes to us.2 Barges carry ninety "
        "tonnes from DC.3 No bridge crosses the river.\n\n" + _listed("1.", "2.", "3.")
    ),
}
FORMS = NUMBERS_AND_LISTS | LABELS | LINKS | HTML | BESIDE

NO_CITATIONS = (
    "The windows (March 12) were new, and so was the roof (Ostrevan 12)",
    "An area of 40 km² in 2023, of 2⁴ parts",
    '<img src="https://logos.example/a.png" style="height:64px"/> stands above',
    "Samples were dated by δ¹C and by ¹N, and Ca²⁺ was stable",
    "Samples were dated by <sup>1</sup>N, on 3 m<sup>2</sup>, with 10<sup>3</sup> grains",
    "Shares lie in the interval [0, 1] by definition",
    "Read `names[3]` before you go on",
    "All stops lie in region 2",
    "All stops lie in regions 2, 3",
    "We follow Annex 3",
    "The rule of [2019] was kept",
    "The first (1) and the second (2) river meet",
    "Every look-up takes O(1), and a move f(2)",
    "The rule was printed in Rivers 2015;135(2):381-388",
    "采用方案②可以节省成本",
    "A curve of a third degree, (t-25)^2 + 3·(t-25)^3, has the terms a·ΔT² and (1/2)³",
    "The vector [1, 1]ᵀ has equal parts",
)
"""Sentences whose numbers and brackets are no marks, though the report has a list."""

_BANKS = "The river has 3 banks, of which 2 are named, and 1 is not.\n\n"
ITEMS = (
    _BANKS + "## Mills and barges in use\n\n1. **[Mill]({mill})** - The mill grinds oats, and rates 4.5\n"
    "2. **[Barge]({barges})** - Barges carry ninety tonnes ([weights]({weights})), and rate 3.2\n"
    "3. No bridge crosses the river, says hall 4\n",
    "## 1) Mills and literature on them\n\n- The mill grinds oats[[1]]({mill}).\n- Barges carry ninety tonnes[[2]]"
    "({barges})[[3]]({weights}).\n\n## What next\n\n1) No bridge crosses the river.\n",
    _BANKS
    + "## Facts\n\n1. The mill grinds oats {mill}\n2. Barges carry ninety tonnes {barges} and {weights}\n\n"
    "No bridge crosses the river.\n",
)
"""Numbered and other items that state something and link to its sources, and are no list of them."""
