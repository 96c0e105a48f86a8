"""A digest of the sources that define a class: part of its Numba type, so that an edited game never meets the
compiled code of its former self.

A class of a file answers for that file and all that it imports, as they are when the class is made. A class of a
notebook or of an interactive session has no file; there the code itself counts, with the globals that it names.
"""

import functools
import hashlib
import sys
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from envs.cache import digest_of_files, local_imports

_known: dict[type, str] = {}  # by class of a file


def class_digest(cls: type) -> str:
    """Changes whenever code that the class's methods may use changes."""
    if cls in _known:
        return _known[cls]
    digest, lasting = hashlib.sha256(), True
    for base in cls.__mro__:
        if base.__module__ in ("builtins", "envs.compiled"):
            continue
        file = _file_of(base)
        if file is not None:
            digest.update(digest_of_files(local_imports([file])).encode())
        else:
            lasting = False  # a cell of a notebook may yet give another meaning to the names that it uses
            _digest_members(digest, base, set())
    if lasting:
        _known[cls] = digest.hexdigest()
    return digest.hexdigest()


def _file_of(cls: type) -> Path | None:
    """The file that defines a class; None if it was typed in or given to exec()."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if not file or not Path(file).is_file():
        return None
    path = Path(file).resolve()
    written = {Path(value.__code__.co_filename) for value in vars(cls).values() if isinstance(value, FunctionType)}
    # A dataclass has methods of other origin too, so one method that comes from the file is enough.
    return path if not written or any(name.resolve() == path for name in written) else None


def _digest_members(digest: Any, cls: type, seen: set[int]) -> None:
    for name, value in sorted(vars(cls).items()):
        if name not in ("__dict__", "__weakref__", "__doc__"):
            digest.update(name.encode())
            _digest_value(digest, value, seen)


def _digest_value(digest: Any, value: Any, seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (staticmethod, classmethod, functools.cached_property, property)):
        value = getattr(value, "__func__", None) or getattr(value, "fget", None) or getattr(value, "func", None)
    value = getattr(value, "py_func", value)
    if isinstance(value, FunctionType):
        _digest_code(digest, value.__code__)
        for cell in value.__closure__ or ():
            _digest_value(digest, cell.cell_contents, seen)
        for name in sorted(_names(value.__code__)):
            if name in value.__globals__:
                digest.update(name.encode())
                _digest_value(digest, value.__globals__[name], seen)
    elif isinstance(value, np.ndarray):
        digest.update(value.tobytes())
    elif isinstance(value, type):
        if _file_of(value) is None and value.__module__ != "builtins":
            _digest_members(digest, value, seen)
    elif not isinstance(value, ModuleType):
        text = repr(value)
        digest.update(text.encode() if " at 0x" not in text else type(value).__name__.encode())


def _names(code: CodeType) -> set[str]:
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


def _digest_code(digest: Any, code: CodeType) -> None:
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames)).encode())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _digest_code(digest, constant)
        else:
            digest.update(repr(constant).encode())
