"""Sizes of the element types that profilers and flight recorders name."""

from __future__ import annotations

_BYTES_OF_DTYPE = {
    **dict.fromkeys(("double", "long", "int64", "uint64", "float64", "complexfloat"), 8),
    **dict.fromkeys(("float", "int", "int32", "uint32", "float32", "complexhalf"), 4),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16", "uint16"), 2),
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    "complexdouble": 16,
}


def bytes_of_dtype(name: str) -> int | None:
    """Bytes of an element of the type called *name*, in whatever case; None if that is unknown."""
    return _BYTES_OF_DTYPE.get(name.lower())
