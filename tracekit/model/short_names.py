"""Names of kernels and operators as a person can read them in a line."""

from __future__ import annotations


def short_name(name: str) -> str:
    """*name* without what every C++ kernel's name repeats: return type, library namespaces, argument list."""
    for noise in ("void ", "at::native::", "(anonymous namespace)::"):
        name = name.replace(noise, "")
    name = name.split(" [clone", 1)[0]
    bare = name[: _arguments(name)]
    return name if bare.endswith(" ") else bare or name  # ``Memcpy HtoD (Pageable -> Device)`` has no arguments


def _arguments(name: str) -> int:
    """Where the argument list that *name* ends with begins; its length if it ends with none."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[position], 0)
        if depth == 0:
            return position if name.endswith(")") else len(name)
    return len(name)


def shorten(text: str, width: int) -> str:
    """*text* in at most *width* characters; what does not fit goes from the middle, where kernel names say least."""
    if len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
