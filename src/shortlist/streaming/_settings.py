"""Which controller decides about a stream, and under which capacity."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

from .._core.validation import check_option
from ..capacity import Capacity
from ..exceptions import CapacityError
from ..online import (
    BudgetController,
    Controller,
    EmaController,
    QuantileTracker,
    TokenBucketController,
    WindowController,
)
from ..tables import TableModel, WorkColumns

__all__ = ["CONTROLLERS", "StreamSettings", "make_controller"]

_KINDS: dict[str, type[Controller]] = {
    "tracker": QuantileTracker,
    "budget": BudgetController,
    "bucket": TokenBucketController,
    "window": WindowController,
    "ema": EmaController,
}
#: Values of `--controller`; "auto" is a budget for a number per period, otherwise a tracker.
CONTROLLERS = ("auto", *_KINDS)
# The controller of a budget of work: for a rate, and for a period.
_OF_WORK = {False: "tracker", True: "budget"}
# The options of each controller besides its capacity.
_OPTIONS = {
    "tracker": ("prevalence",),
    "budget": ("period", "expected_arrivals", "starts_at", "probe", "probe_key"),
    "bucket": ("period", "expected_arrivals", "prevalence", "burst"),
    "window": ("prevalence", "window"),
    "ema": ("prevalence",),
}


@dataclass(frozen=True)
class StreamSettings:
    """How a stream is decided.

    Attributes
    ----------
    controller : str
        One of :data:`CONTROLLERS`.
    capacity : Capacity or None
        None takes the capacity of the model.
    period : float, str or None
        The period of a count without `per`: in seconds, or of a calendar, such as
        ``"day Europe/Berlin"``.
    expected_arrivals : int or None
        Lines in a period, as a first estimate. None derives it from the count and the model's own
        flag rate.
    starts_at : float
        A moment at which a period starts.
    work : WorkColumns or None
        The columns with values and efforts, if the model weighs them.
    probe, probe_key : float, str or None
        For the controller "budget": the share of the flags that is drawn below the threshold, and
        the key of the draw. None makes up a secret key, which the state keeps.
    burst, window, remember : int or None
        Options of the controllers "bucket" and "window", and how many ids are remembered; None
        takes their defaults.
    """

    controller: str = "auto"
    capacity: Capacity | None = None
    period: float | str | None = None
    expected_arrivals: int | None = None
    starts_at: float = 0.0
    burst: int | None = None
    window: int | None = None
    remember: int | None = None
    work: WorkColumns | None = None
    probe: float = 0
    probe_key: str | None = None

    def resolved(self, model: TableModel) -> StreamSettings:
        """Return the settings with everything filled in that the model knows."""
        check_option("controller", self.controller, CONTROLLERS)
        capacity = model.classifier.capacity if self.capacity is None else self.capacity
        self._check(capacity)
        name, expected = self.controller, self.expected_arrivals
        if name == "auto":
            name = "tracker" if self.period is None else "budget"
        if self.probe and name != "budget":
            raise CapacityError(
                f"Probes need a number of flags per period, and the controller {name!r} keeps none "
                "for them. Use the controller 'budget', as in --count 50 --period day --probe 0.1."
            )
        for option, owner in (("burst", "bucket"), ("window", "window")):
            if getattr(self, option) is not None and name != owner:
                raise CapacityError(
                    f"--{option} belongs to --controller {owner}, and the controller is {name!r}. "
                    "Name that controller, or leave the option out."
                )
        if self.period is not None and expected is None:
            expected = _expected_arrivals(model, capacity)
        return replace(self, controller=name, capacity=capacity, expected_arrivals=expected)

    def _check(self, capacity: Capacity) -> None:
        per_period = capacity.kind in ("count", "effort") and capacity.per is None
        if per_period != (self.period is not None):
            raise CapacityError(
                f"A number of flags and a period belong together; got {capacity!r} and "
                f"period={self.period!r}. Fifty flags a day are Capacity.count(50) with "
                "period=86_400 (--count 50 --period day); a share has no period."
            )
        if capacity.kind == "effort" and self.controller not in ("auto", _OF_WORK[per_period]):
            raise CapacityError(
                f"The controller {self.controller!r} does not count work, which {capacity!r} is. "
                f"Use the controller {_OF_WORK[per_period]!r}, or leave it out."
            )
        if per_period and self.controller not in ("auto", "budget", "bucket"):
            raise CapacityError(
                f"The controller {self.controller!r} keeps a share of all cases, and cannot count "
                f"{capacity.value} flags in a period, as --count and --period ask. Use the "
                "controller 'budget', or give a share (--fraction) and no period."
            )

    def to_json(self) -> dict[str, Any]:
        """Return what distinguishes this stream from another, as plain JSON.

        Without probes it says nothing about them, as in states from before there were any.
        """
        drawn = {"probe": float(self.probe), "probe_key": _fingerprint(self.probe_key)}
        return {
            "controller": self.controller,
            "capacity": None if self.capacity is None else self.capacity.to_json(),
            "period": self.period,
            "starts_at": self.starts_at,
            "burst": self.burst,
            "window": self.window,
            "remember": self.remember,
            **({} if self.work is None else {"work": self.work.columns}),
            **(drawn if self.probe else {}),
        }


def _fingerprint(key: str | None) -> str | None:
    """Return a text that tells keys apart without giving them away."""
    return None if key is None else hashlib.blake2b(key.encode(), digest_size=8).hexdigest()


def _expected_arrivals(model: TableModel, capacity: Capacity) -> int:
    """Return in how many lines the model would use up a budget of flags or of work."""
    own, share = model.classifier.capacity, model.classifier.capacity_fraction_
    if capacity.kind == "effort":
        share = float(own.effort_per_item()) if own.kind == "effort" else 0.0
    return max(1, round(float(capacity.value) / share)) if share > 0 else 1_000


def make_controller(model: TableModel, settings: StreamSettings) -> Controller:
    """Return a new controller that starts from the calibration scores of a model."""
    settings = settings.resolved(model)
    known = {
        "period": settings.period,
        "expected_arrivals": settings.expected_arrivals,
        "starts_at": settings.starts_at,
        "prevalence": model.classifier.reference_prevalence_,
        "burst": settings.burst,
        "window": settings.window,
        "remember": settings.remember,
        "probe": settings.probe or None,
        "probe_key": settings.probe_key,
    }
    names = (*_OPTIONS[settings.controller], "remember")
    options = {name: known[name] for name in names if known[name] is not None}
    assert settings.capacity is not None  # `resolved` has filled it in
    if settings.capacity.kind == "effort":
        kept = {name: given for name, given in options.items() if name != "prevalence"}
        return model.classifier.controller(settings.capacity, **kept)
    kind: Any = _KINDS[settings.controller]
    return kind(
        settings.capacity, calibration_scores=model.classifier.calibration_scores_, **options
    )
