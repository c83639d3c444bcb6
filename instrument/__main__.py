"""Run a training script and record it: ``python -m tracekit.instrument [--out DIR] [--active N] ... train.py [ARGUMENTS]``.

Works where a launcher insists on starting Python itself: ``torchrun -m tracekit.instrument train.py``. The options are the settings
of `tracekit.instrument.settings.Settings`; ``TRACEKIT_RECORD`` overrides them.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from dataclasses import MISSING, fields
from pathlib import Path

from tracekit.instrument.auto import arm
from tracekit.instrument.settings import Settings, SettingsError, from_environment, make, with_ranks

_NOT_OPTIONS = ("strategy",)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tracekit.instrument", description=(__doc__ or "").split("\n\n")[0])
    for field in fields(Settings):
        if field.name in _NOT_OPTIONS or field.default is MISSING:
            continue
        name = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(name, action="store_true", default=None)
        else:
            parser.add_argument(name, type=type(field.default), default=None, help=f"default {field.default}")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = vars(parser.parse_args())
    script, arguments, module = options.pop("script"), options.pop("arguments"), options.pop("module")
    try:
        given = {name: value for name, value in options.items() if value is not None}
        arm(from_environment() or make(with_ranks(given)))
    except SettingsError as error:
        parser.error(str(error))
    sys.argv = [script, *arguments]
    if module:
        sys.path.insert(0, "")
        runpy.run_module(script, run_name="__main__", alter_sys=True)
        return
    if not Path(script).is_file():
        parser.error(f"{script}: no such script")
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
