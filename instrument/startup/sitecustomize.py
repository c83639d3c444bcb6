"""Imported by every Python process below ``tracekit record``, which puts this folder first on PYTHONPATH.

Runs the ``sitecustomize`` that it hides, if there is one, then waits for a training step. It must never keep a program from
starting.
"""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_hidden = importlib.machinery.PathFinder.find_spec(
    "sitecustomize", [entry for entry in sys.path if os.path.abspath(entry or ".") != _here]
)
if _hidden is not None and _hidden.loader is not None:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))

if "TRACEKIT_RECORD" in os.environ:
    try:
        from tracekit.instrument.auto import arm
    except ImportError as error:
        print(
            f"tracekit: nothing is recorded: {error} (is tracekit-ml installed for {sys.executable}?)", file=sys.stderr
        )
    else:
        arm()
