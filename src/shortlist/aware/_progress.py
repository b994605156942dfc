"""Progress of long fits, told to scikit-learn's callbacks where it has them (1.9 and later)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.8

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for callbacks that are not there."""

    def with_callbacks(method: Any) -> Any:
        """Leave the method as it is."""
        return method


__all__ = ["ProgressMixin", "with_callbacks"]

Task = TypeVar("Task")


class ProgressMixin(CallbackSupportMixin):
    """A classifier whose `fit` goes through tasks, each of which is told to the callbacks.

    `fit` is decorated by `with_callbacks`, and goes through `_told` once.
    """

    def _told(self, tasks: Collection[Task], name: str) -> Iterator[Task]:
        """Yield the tasks one by one, and say when each begins and ends."""
        if not hasattr(self, "_init_callback_context"):
            yield from tasks
            return
        whole = self._init_callback_context(max_subtasks=len(tasks))
        whole.call_on_fit_task_begin(estimator=self)
        for task in tasks:
            part = whole.subcontext(task_name=name)
            part.call_on_fit_task_begin(estimator=self)
            yield task
            part.call_on_fit_task_end(estimator=self)
        whole.call_on_fit_task_end(estimator=self)
