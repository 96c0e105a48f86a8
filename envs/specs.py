"""Spec strings, `name:key=value,key=value`: how games and agents are named everywhere."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from envs.errors import InputError

_WORDS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


def pairs(what: str, text: str) -> dict[str, str]:
    """The key=value pairs of a spec's tail; `what` begins the error messages.

    >>> pairs("agent 'mcts:seed=1'", "seed=1")
    {'seed': '1'}
    >>> pairs("game 'game_tree'", "tree=[[3,12],[2,4]],players=2")  # a comma in brackets divides nothing
    {'tree': '[[3,12],[2,4]]', 'players': '2'}
    """
    found: dict[str, str] = {}
    for part in filter(None, (word.strip() for word in split(text))):
        name, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{what}: {part!r} is not of the form key=value")
        if name.strip() in found:
            raise InputError(f"{what}: {name.strip()} is given twice")
        found[name.strip()] = value.strip()
    return found


def split(text: str) -> list[str]:
    """The parts between the commas that stand outside of all brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[({") - (letter in "])}")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def build(what: str, cls: type, values: Mapping[str, Any]) -> Any:
    """An object of a dataclass from named values; text is converted to the type of the field's default."""
    if not is_dataclass(cls):
        raise InputError(f"{what}: class {cls.__name__} must be a dataclass, @dataclass(frozen=True)")
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
    try:
        return cls(**arguments)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        raise InputError(f"{what}: {error}") from error


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
        kind = next((text for kind, text in kinds.items() if isinstance(default, kind)), "whole numbers joined by +")
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
