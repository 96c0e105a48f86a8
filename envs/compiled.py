"""Plain Python objects whose methods compile to native code.

`Compiled` is the base of games and of evaluations. What Numba sees of an object:

- its *constants*: every public attribute that is a bool, int or float, properties included. They are
  compile-time constants. Objects with the same class and the same constants have the same Numba type, so
  they share compiled code.
- its *tables*: the arrays that `tables()` returns. Their shapes are compile-time constants, their contents
  are run-time data behind one pointer, so a million weights compile no slower than one. A table without
  dimensions is a number that is read at run time; one with the name of a constant takes its place, so that
  objects that differ in that number share compiled code (game trees do).
- its methods: direct calls that LLVM can inline.

A search written once as `search(game, states, ...)` is thus specialised per game and cached on disk.
The Numba type carries a digest of the sources that define the class, so that an edited game (also one in a
user's file or in a notebook cell) never meets the compiled code of its former self.
"""

import hashlib
import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import (
    NativeValue,
    models,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype

from envs.cache import cache_folder
from envs.digest import class_digest


def njit(function: Any) -> Any:
    """Compiles a function, specialised per game and cached on disk; runs it as it is under NUMBA_DISABLE_JIT=1."""
    config: Any = numba.config
    chosen = config.CACHE_DIR  # an explicit NUMBA_CACHE_DIR wins
    file = Path(function.__code__.co_filename)
    on_disk = file.is_file()  # not so in a notebook or an interactive session: compiled anew in each process
    try:
        if on_disk and not chosen:
            config.CACHE_DIR = str(cache_folder(file) or "")
        # Without the interpreter's lock, so that another thread can stop a search or run one of its own.
        return numba.njit(cache=on_disk, error_model="numpy", nogil=True)(function)
    finally:
        config.CACHE_DIR = chosen


def njit_part(function: Any) -> Any:
    """Like `njit`, but cached only as a part of its callers: for recursive functions that compiled code calls.

    Numba links a recursive function wrongly if it comes from the disk and a caller is compiled anew (its issue 6061).
    """
    return numba.njit(error_model="numpy", nogil=True)(function)


_ALIGNMENT = 64


@dataclass(frozen=True)
class Identity:
    """All that compiled code may depend on; equal identities share compiled code."""

    module: str
    name: str
    sources: str
    constants: tuple[tuple[str, Any], ...]
    tables: tuple[tuple[str, str, tuple[int, ...], int], ...]  # name, dtype, shape, byte offset

    def title(self) -> str:
        return f"{self.name}#{hashlib.sha256(repr(self).encode()).hexdigest()[:20]}"


class CompiledType(types.Type):
    """The Numba type of all objects of one identity. A subclass per Python class carries its methods."""

    def __init__(self, identity: Identity):
        self.identity = identity
        self.constants = dict(identity.constants)
        self.tables = {name: (dtype, shape, offset) for name, dtype, shape, offset in identity.tables}
        super().__init__(name=identity.title())

    def __reduce__(self):  # by value: a cache index may name classes that this process never imports
        i = self.identity
        return _type_of_identity, (i.module, i.name, i.sources, i.constants, i.tables)


_type_classes: dict[tuple[str, str], type[CompiledType]] = {}


def _type_of_identity(*parts: Any) -> CompiledType:
    identity = Identity(*parts)
    return _type_classes.get((identity.module, identity.name), CompiledType)(identity)


class Compiled:
    """Base class; subclasses are frozen dataclasses whose fields are their parameters."""

    def tables(self) -> dict[str, np.ndarray]:
        """Read-only arrays for use in the methods, as `self.<name>`."""
        return {}

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        class_digest(cls)  # now, while the files are what was imported
        type_class = type(f"{cls.__name__}Type", (CompiledType,), {})
        _type_classes[cls.__module__, cls.__qualname__] = type_class
        register_model(type_class)(models.OpaqueModel)
        unbox(type_class)(_unbox)
        _register_attributes(type_class)
        for name in dir(cls):
            method = getattr(cls, name)
            if inspect.isfunction(method) and not name.startswith("_") and name not in _PYTHON_ONLY:
                _register_method(type_class, name, method)

    def __getattr__(self, name: str) -> Any:  # only reached by names that are not there yet
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "_tables":
            object.__setattr__(self, "_tables", _pack(self.tables()))
            return self._tables
        if name == "_address":
            object.__setattr__(self, "_address", self._tables[0].ctypes.data)
            return self._address
        if name == "_numba_type_":
            object.__setattr__(self, "_numba_type_", _numba_type(self))
            return self._numba_type_
        if name == "_views":
            object.__setattr__(self, "_views", _views(*self._tables))
            return self._views
        if name in self._views:
            return self._views[name]
        raise AttributeError(f"{type(self).__name__} has no attribute or table {name!r}")

    def __reduce__(self):
        return _rebuild, (type(self), {f.name: getattr(self, f.name) for f in fields(self) if f.init})


_PYTHON_ONLY = {"tables"}


def python_only(method: Any) -> Any:
    """Marks a method (by its name, in all subclasses) as never called from compiled code."""
    _PYTHON_ONLY.add(method.__name__)
    return method


def _rebuild(cls: type, arguments: dict[str, Any]) -> Any:
    return cls(**arguments)


def _pack(tables: dict[str, np.ndarray]) -> tuple[np.ndarray, tuple[tuple[str, str, tuple[int, ...], int], ...]]:
    """Copies all tables into one aligned buffer; returns it with each one's dtype, shape and offset."""
    layout, size = [], 0
    for name, table in sorted(tables.items()):
        layout.append((name, table.dtype.str, table.shape, size))
        size += -(-table.nbytes // _ALIGNMENT) * _ALIGNMENT
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    buffer = raw[-raw.ctypes.data % _ALIGNMENT :][:size]
    packed = (buffer, tuple(layout))
    for name, view in _views(*packed).items():
        view.flags.writeable = True
        view[...] = tables[name]
    buffer.flags.writeable = False
    return packed


def _views(buffer: np.ndarray, layout: tuple) -> dict[str, np.ndarray]:
    views = {}
    for name, dtype, shape, offset in layout:
        count = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        views[name] = buffer[offset : offset + count].view(dtype).reshape(shape)
    return views


def _numba_type(item: Compiled) -> CompiledType:
    cls = type(item)
    constants = []
    layout = item._tables[1]
    tables = {name for name, *_ in layout}
    for name in dir(cls):
        if name.startswith("_") or name in tables or callable(getattr(cls, name)):
            continue
        value = getattr(item, name)
        if isinstance(value, np.generic) and not isinstance(value, np.uint64):
            value = value.item()
        if isinstance(value, (bool, int, float, np.uint64)):
            constants.append((name, value))
    known = {name for name, _ in constants} | tables
    for field in fields(item):  # type: ignore[arg-type]  # fields without a default are no class attributes
        value = getattr(item, field.name)
        if field.name not in known and isinstance(value, (bool, int, float, np.uint64)):
            constants.append((field.name, value))
    identity = Identity(cls.__module__, cls.__qualname__, class_digest(cls), tuple(sorted(constants)), layout)
    return cls_type(cls)(identity)


def cls_type(cls: type) -> type[CompiledType]:
    return _type_classes[cls.__module__, cls.__qualname__]


@typeof_impl.register(Compiled)
def _typeof(item: Compiled, context: Any) -> CompiledType:
    return item._numba_type_


def _unbox(typ: CompiledType, item: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(item, "_address")
    failed = cgutils.is_null(c.builder, address)  # tables are made when first asked for; that can be interrupted
    pointer = cgutils.alloca_once_value(c.builder, cgutils.get_null_value(cgutils.voidptr_t))
    with c.builder.if_then(cgutils.is_not_null(c.builder, address)):
        c.builder.store(c.pyapi.long_as_voidptr(address), pointer)
        c.pyapi.decref(address)
    return NativeValue(c.builder.load(pointer), is_error=failed)


def _register_method(type_class: type[CompiledType], name: str, method: Any) -> None:
    def choose(*arguments: Any) -> Any:
        return method

    choose.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]  # Numba compares the two
    choose.__name__ = choose.__qualname__ = name
    overload_method(type_class, name, jit_options={"error_model": "numpy"})(choose)  # type: ignore[call-arg]


def _kind(value: Any) -> types.Type:
    if isinstance(value, bool):
        return types.boolean
    if isinstance(value, np.uint64):
        return types.uint64
    return types.int64 if isinstance(value, int) else types.float64


def _register_attributes(type_class: type[CompiledType]) -> None:
    @infer_getattr
    class Attributes(AttributeTemplate):
        key = type_class

        def generic_resolve(self, typ: CompiledType, name: str) -> Any:  # type: ignore[override]
            if name in typ.constants:
                return _kind(typ.constants[name])
            if name in typ.tables:
                dtype, shape, _ = typ.tables[name]
                if shape == ():
                    return from_dtype(np.dtype(dtype))
                return types.Array(from_dtype(np.dtype(dtype)), len(shape), "C", readonly=True)
            return None

    @lower_getattr_generic(type_class)
    def lower(context: Any, builder: Any, typ: CompiledType, value: Any, name: str) -> Any:
        if name in typ.constants:
            constant = typ.constants[name]
            number = int(constant) if isinstance(constant, np.uint64) else constant
            return context.get_constant(_kind(constant), number)
        dtype, shape, offset = typ.tables[name]
        start = builder.gep(value, [context.get_constant(types.intp, offset)])
        if shape == ():
            scalar = from_dtype(np.dtype(dtype))
            pointer = builder.bitcast(start, context.get_data_type(scalar).as_pointer())
            return context.unpack_value(builder, scalar, pointer)
        array_type = types.Array(from_dtype(np.dtype(dtype)), len(shape), "C", readonly=True)
        array = context.make_array(array_type)(context, builder)
        itemsize = np.dtype(dtype).itemsize
        strides = [itemsize * int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
        populate_array(
            array,
            data=builder.bitcast(start, array.data.type),
            shape=[context.get_constant(types.intp, n) for n in shape],
            strides=[context.get_constant(types.intp, n) for n in strides],
            itemsize=context.get_constant(types.intp, itemsize),
            meminfo=None,
        )
        return array._getvalue()
