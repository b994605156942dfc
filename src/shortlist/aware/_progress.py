"""Progress of long fits, told to scikit-learn's callbacks where these exist."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nobody to tell."""

        def _init_callback_context(self, **options: Any) -> Any:
            return _Silence()

    def with_callbacks(method: Any) -> Any:
        """Leave a method as it is."""
        return method


__all__ = ["ProgressMixin", "with_callbacks"]


class _Silence:
    """The context of a task when nobody listens."""

    def subcontext(self, **options: Any) -> _Silence:
        return self

    def call_on_fit_task_begin(self, **options: Any) -> _Silence:
        return self

    def call_on_fit_task_end(self, **options: Any) -> bool:
        return False


class ProgressMixin(CallbackSupportMixin):
    """For classifiers whose fit is a number of steps.

    `fit` is decorated by `with_callbacks`, and calls `_begin` once; then each step of `_steps` is
    shown by ``set_callbacks(sklearn.callback.ProgressBar())``, and counted by other callbacks.
    """

    def _begin(self, n_steps: int) -> Any:
        """Announce a fit of at most so many steps, and return its context."""
        context = self._init_callback_context(max_subtasks=n_steps)
        return context.call_on_fit_task_begin(estimator=self)

    def _steps(self, n_steps: int) -> Iterator[int]:
        """Yield numbers from 0, each a step; end before `n_steps` if a callback asks for it."""
        fit = getattr(self, "_callback_fit_ctx", _Silence())
        for step in range(n_steps):
            context = fit.subcontext(task_name="step").call_on_fit_task_begin(estimator=self)
            yield step
            if context.call_on_fit_task_end(estimator=self):
                return
