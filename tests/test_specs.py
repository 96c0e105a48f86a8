"""Spec strings: parsing, conversion, errors that name what is accepted, and the way back."""

from dataclasses import dataclass

import pytest

from envs.errors import InputError
from envs.specs import build, pairs, text_of


@dataclass(frozen=True)
class Thing:
    count: int = 3
    rate: float = 0.5
    loud: bool = False
    name: str = "x"
    heaps: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Needy:
    size: int
    depth: int = 1

    def __post_init__(self):
        if self.size > 5:
            raise ValueError("size must be at most 5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        (" a = 1 , b=x=y ", {"a": "1", "b": "x=y"}),
        ("a=1,,b=2,", {"a": "1", "b": "2"}),
        ("tree=[[1,2],[3]],b=2", {"tree": "[[1,2],[3]]", "b": "2"}),
    ],
)
def test_pairs(text, expected):
    assert pairs("thing", text) == expected


@pytest.mark.parametrize(
    "thing",
    [
        Thing(),
        Thing(count=-4, rate=1e-3),
        Thing(loud=True, name="a b"),
        Thing(heaps=(4,)),
        Thing(heaps=(3, 1, 4, 1), count=0, rate=2.0),
    ],
)
def test_round_trip(thing):
    spec = text_of("thing", thing)
    name, _, rest = spec.partition(":")
    assert name == "thing"
    assert build(spec, Thing, pairs(spec, rest)) == thing


def test_only_what_differs_is_written():
    assert text_of("thing", Thing()) == "thing"
    assert text_of("thing", Thing(count=5, heaps=(7, 8))) == "thing:count=5,heaps=7+8"


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("count", ["'count'", "key=value"]),
        ("count=1,count=2", ["count", "twice"]),
        ("size=1", ["'size'", "count, rate, loud, name, heaps"]),
        ("count=many", ["count='many'", "whole number"]),
        ("count=1.5", ["count='1.5'", "whole number"]),
        ("rate=fast", ["rate='fast'", "a number"]),
        ("loud=maybe", ["loud='maybe'", "true or false"]),
        ("heaps=1+x", ["heaps='1+x'", "joined by +"]),
    ],
)
def test_errors_name_the_value_and_what_is_accepted(rest, words):
    with pytest.raises(InputError) as caught:
        build("thing 'x'", Thing, pairs("thing 'x'", rest))
    message = str(caught.value)
    assert message.startswith("thing 'x'") and "\n" not in message
    assert all(word in message for word in words), message


def test_missing_and_impossible_values():
    with pytest.raises(InputError, match="needs size"):
        build("needy", Needy, {})
    with pytest.raises(InputError, match="needy: size must be at most 5"):
        build("needy", Needy, {"size": 6})
    assert build("needy", Needy, {"size": 5}) == Needy(5)


def test_a_class_that_is_no_dataclass():
    with pytest.raises(InputError, match="class int must be a dataclass"):
        build("number", int, {})
