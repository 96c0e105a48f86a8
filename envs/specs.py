"""Spec strings, `name:key=value,key=value`: how games and agents are named everywhere."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from envs.errors import InputError

_WORDS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


def pairs(what: str, text: str) -> dict[str, str]:
    """The key=value pairs of a spec's tail; `what` begins the error messages.

    >>> pairs("agent 'mcts:seed=1'", "seed=1")
    {'seed': '1'}
    """
    found: dict[str, str] = {}
    for part in filter(None, (word.strip() for word in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{what}: {part!r} is not of the form key=value")
        if name.strip() in found:
            raise InputError(f"{what}: {name.strip()} is given twice")
        found[name.strip()] = value.strip()
    return found


def build(what: str, cls: type, values: Mapping[str, Any]) -> Any:
    """An object of a dataclass from named values; text is converted to the type of the field's default."""
    known = {field.name: field for field in fields(cls) if field.init}
    arguments = {}
    for name, value in values.items():
        if name not in known:
            raise InputError(f"{what} has no parameter {name!r}; parameters: {', '.join(known) or 'none'}")
        arguments[name] = converted(f"{what}: {name}", value, known[name].default)
    missing = [
        name
        for name, f in known.items()
        if f.default is MISSING and f.default_factory is MISSING and name not in values
    ]
    if missing:
        raise InputError(f"{what} needs {', '.join(missing)}")
    return cls(**arguments)


def converted(what: str, value: Any, default: Any) -> Any:
    """The value in the type of the default; `what` begins the error messages."""
    try:
        if isinstance(default, bool):
            return value if isinstance(value, bool) else _WORDS[str(value).lower()]
        if isinstance(default, int):
            if isinstance(value, float) and not value.is_integer():
                raise ValueError
            return int(value)
        if isinstance(default, float):
            return float(value)
        if isinstance(default, tuple):
            items = value.replace("+", " ").split() if isinstance(value, str) else value
            return tuple(int(item) for item in items)
        if isinstance(default, str):
            return str(value)
    except (ValueError, TypeError, KeyError):
        kinds = {bool: "true or false", int: "a whole number", float: "a number"}
        kind = kinds.get(type(default), "whole numbers joined by +")
        raise InputError(f"{what}={value!r} must be {kind}") from None
    return value


def text_of(name: str, item: Any) -> str:
    """The spec that makes this dataclass object again: the name and the fields that differ from their defaults."""
    changed = []
    for field in fields(item):
        value = getattr(item, field.name)
        if field.init and value != field.default:
            changed.append(f"{field.name}={'+'.join(map(str, value)) if isinstance(value, tuple) else value}")
    return f"{name}:{','.join(changed)}" if changed else name
