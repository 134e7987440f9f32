"""Pages made from jinja2 templates, which lie beside the module that fills them.

Every value is escaped unless it is `Markup` already, so untrusted text stays text, and a name that a template uses and
nobody gave is an error. All can call `plural`.
"""

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from adjudge.judges.plural import plural


def render(template: str, package: str = "adjudge.engine.tables", **values: object) -> str:
    """The text of `template`, a file in the folder of `package` or of `adjudge.engine.tables`, with `values`.

    Lone surrogates become question marks: they have no encoding, so they could not be written or sent.
    """
    text = _templates(package).get_template(template).render(values)
    return text.encode("utf-8", "replace").decode()


@cache
def _templates(package: str) -> Environment:
    shared = "adjudge.engine.tables"
    packages = dict.fromkeys([package, shared])
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in packages]),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["plural"] = plural
    return environment
