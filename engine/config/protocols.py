"""The protocols that a configuration names, with their options."""

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import msgspec

from adjudge.engine.config.settings import ConfigError, mistake, plugin
from adjudge.engine.errors import nearest
from adjudge.scoring.contract.protocol import ScoringProtocol, installed_protocols, published_protocols

__all__ = ["named_protocols", "protocol_loaders", "with_options"]


def named_protocols(
    entries: Sequence[str | dict[str, Any]], shared: Mapping[str, object], published: Mapping[str, object]
) -> tuple[ScoringProtocol, ...]:
    """The protocols of `entries`, with those of the options `shared` by all that they have. Raises ConfigError.

    Those that send a benchmark's own calls share the `published` options too.
    """
    chosen = [_protocol(entry, shared, published) for entry in entries]
    names = [protocol.name for protocol in chosen]
    if not names:
        raise ConfigError("protocols: name at least one")
    if len(set(names)) < len(names):
        raise ConfigError("protocols: a protocol may be named once; use another run for other options")
    return tuple(chosen)


def _protocol(
    entry: str | dict[str, Any], shared: Mapping[str, object], published: Mapping[str, object]
) -> ScoringProtocol:
    """The protocol of an entry, with those of the shared options that it has, unless its entry says other."""
    options = {"name": entry} if isinstance(entry, str) else dict(entry)
    name = options.pop("name", None)
    call = options.pop("call", "own")
    if call not in ("own", "published"):
        raise ConfigError(f"protocols: {name}: call: {call!r} is unknown; use own or published")
    loaders = protocol_loaders()
    if name is None:
        meant = next((key for key in options if key in loaders), "fact")
        raise ConfigError(f"protocols: an entry has no name; write {{name: {meant}, OPTION: VALUE}}")
    if not isinstance(name, str) or name not in loaders:
        near = nearest(
            str(name), sorted(loaders), "one of your own needs its package installed: pip install -e FOLDER"
        )
        raise ConfigError(f"protocols: unknown protocol {name!r}; {near}")
    if call == "published":
        loaders = _published_loaders()
        if name not in loaders:
            there = ", ".join(sorted(loaders))
            raise ConfigError(
                f"protocols: {name}: has no published calls; leave call: out, or use one of {there}"
            )
        shared = {**shared, **published}
    kind = loaders[name]()
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    if not is_struct:
        raise ConfigError(f"protocols: {name}: its entry point must be a class of msgspec.Struct")
    own = options.keys() - shared.keys()
    known = getattr(kind, "__struct_fields__", ())
    options = {key: value for key, value in {**shared, **options}.items() if key in own or key in known}
    try:
        protocol: ScoringProtocol = msgspec.convert(options, type=kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"protocols: {name}: {mistake(error, kind, options)}") from error
    return protocol


@cache
def _published_loaders() -> dict[str, Any]:
    return {name: partial(plugin, "protocols", name, load) for name, load in published_protocols()}


@cache
def protocol_loaders() -> dict[str, Any]:
    """The loaders of all installed protocols, by name. A loader raises ConfigError for a package that is broken."""
    return {name: partial(plugin, "protocols", name, load) for name, load in installed_protocols()}


def with_options(chosen: Any, entries: Any) -> Any:
    """The `chosen` protocols; one that is given by name alone takes the options of its entry in `entries`."""
    if not isinstance(chosen, list) or not isinstance(entries, list):
        return chosen
    known = {str(entry.get("name")): entry for entry in entries if isinstance(entry, dict)}
    return [known.get(one, one) if isinstance(one, str) else one for one in chosen]
