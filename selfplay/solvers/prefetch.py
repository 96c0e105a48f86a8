"""A hint to the processor to fetch a place of a big table before it is needed; does nothing when interpreted."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


def prefetch(table: Any, index: Any) -> None:
    """Starts to load table[index] into the cache."""


@intrinsic
def _prefetch(typing_context: Any, table: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte = ir.IntType(8).as_pointer()
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), byte)
        word = ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte] + [word] * 3)
        )
        builder.call(hint, [place, word(0), word(3), word(1)])  # to read, keep near, data
        return context.get_dummy_value()

    return types.void(table, types.uint64), generate


overload(prefetch)(lambda table, index: lambda table, index: _prefetch(table, index))  # type: ignore[call-arg]
