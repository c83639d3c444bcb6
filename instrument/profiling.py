"""`profile`: one object for a step function, a loop or a whole script."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import Any, TypeVar, overload

from tracekit.instrument import say
from tracekit.instrument.recorder import Profiler, Recorder
from tracekit.instrument.settings import Settings, SettingsError, from_environment, make

F = TypeVar("F", bound=Callable[..., Any])


@overload
def profile(out: F) -> F: ...
@overload
def profile(out: str | PathLike[str] | None = None, **settings: Any) -> Profile: ...
def profile(out: Any = None, **settings: Any) -> Any:
    """Record the training steps of this rank.

    Around a loop::

        with profile("traces", active=3) as p:
            for batch in loader:
                train_step(batch)
                p.step()

    Or on the function that makes a step; each call is one::

        @profile
        def train_step(batch): ...

    The first steps are skipped (``skip``, ``warmup``), ``active`` steps are recorded, then nothing is left in the loop. Every
    rank writes ``rank<N>.pt.trace.json.gz`` and ``rank<N>.tracekit.json`` into ``out`` in the background. ``TRACEKIT=0`` turns
    everything off, and ``TRACEKIT_RECORD`` (which ``tracekit record`` sets) overrides the settings given here.

    Args:
        out: folder for the traces (default ``traces``), or the function to decorate.
        settings: the fields of `tracekit.instrument.settings.Settings`.

    Raises:
        SettingsError: for a setting that cannot be.
        TypeError: when what is decorated is no step function.

    """
    if out is not None and not isinstance(out, str | PathLike):
        if not callable(out):
            raise TypeError(f"profile() takes a folder or decorates a function, not {type(out).__name__}")
        return Profile(make(settings))(out)
    given = settings if out is None else {"out": out, **settings}
    return Profile(make(given))


class Profile:
    """What `profile` gives: a context manager around a loop, or a decorator of a step function."""

    def __init__(self, settings: Settings) -> None:
        self.settings = _from_launcher() or settings
        if (auto := sys.modules.get("tracekit.instrument.auto")) is not None:
            auto.disarm()  # the script records itself
        self._recorder = Recorder(self.settings, profiler_for_this_process)

    def __enter__(self) -> Profile:
        if self._recorder.started:  # used for a second loop: a second recording
            self._recorder = Recorder(self.settings, profiler_for_this_process)
        self._recorder.start()
        return self

    def step(self) -> None:
        """Say that a step of the loop has ended."""
        if not self._recorder.started:
            say.warn("step() outside a recording: call it inside `with profile(...) as p:`; nothing is recorded")
            return
        self._recorder.step()

    def stop(self) -> None:
        """End the recording and return when it is written. Leaving the ``with`` block does, and so does the process's end."""
        self._recorder.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __call__(self, function: F) -> F:
        """Decorate *function*, each call of which is a step; the recording ends by itself, or with the process."""
        if inspect.isclass(function) or not callable(function):
            raise TypeError("@profile decorates the function that makes one training step, not a class or a value")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"@profile decorates the function that makes one training step, and {function.__name__} is a generator: "
                "use `with profile(...) as p:` around the loop and p.step() after each step"
            )
        recorder = self._recorder
        depth = 0  # a step function that calls itself, or another decorated with the same object, is one step

        def enter() -> None:
            nonlocal depth
            if not recorder.started:
                recorder.start()
            depth += 1

        def leave() -> None:
            nonlocal depth
            depth -= 1
            if not depth:
                recorder.step()

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def asynchronous(*args: Any, **kwargs: Any) -> Any:
                enter()
                try:
                    return await function(*args, **kwargs)
                finally:
                    leave()

            return asynchronous  # type: ignore[return-value]

        @functools.wraps(function)
        def synchronous(*args: Any, **kwargs: Any) -> Any:
            if recorder.started and not recorder.recording:
                return function(*args, **kwargs)
            enter()
            try:
                return function(*args, **kwargs)
            finally:
                leave()

        return synchronous  # type: ignore[return-value]


def _from_launcher() -> Settings | None:
    """The launcher's settings. A mistake in the environment is no reason to keep a training script from starting."""
    try:
        return from_environment()
    except SettingsError as error:
        say.warn(f"the settings in the environment are left out: {error}")
        return None


def profiler_for_this_process(settings: Settings) -> Profiler:
    """The profiler of the framework that the process has imported: JAX's, or else torch's. ``RuntimeError`` without either."""
    if "jax" in sys.modules and "torch" not in sys.modules:
        from tracekit.instrument.jax_profiler import JaxProfiler

        return JaxProfiler(settings)
    try:
        from tracekit.instrument.torch_profiler import TorchProfiler
    except ModuleNotFoundError as error:
        raise RuntimeError(f"{error.name} is not installed: pip install 'tracekit-ml[torch]', or [jax]") from None
    return TorchProfiler(settings)
