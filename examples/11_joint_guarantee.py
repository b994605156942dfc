"""
A guarantee for all classes at once
===================================

How often does some class of five exceed its capacity on future items? With the plug-in rule nearly
always, if only by a little. With the confident rule hardly ever, at a price that falls with the
size of the calibration sample.
"""

# %%
# Five rare classes around a common one. A large population stands for the future: the flag rates in
# it are the true ones.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from shortlist import Capacity, MulticlassCapacityClassifier
from shortlist.exceptions import InsufficientCalibrationWarning

PREVALENCES = np.array([0.01, 0.015, 0.02, 0.025, 0.03])
rng = np.random.default_rng(0)
centres = np.vstack([np.zeros(4), 2 * rng.normal(size=(5, 4))])


def draw(n):
    """Draw items and their classes; class 0 is the common one."""
    y = rng.choice(6, p=[1 - PREVALENCES.sum(), *PREVALENCES], size=n)
    return centres[y] + rng.normal(size=(n, 4)), y


lda = LinearDiscriminantAnalysis().fit(*draw(20_000))
future, _ = draw(50_000)
capacities = {j: Capacity.fraction(share) for j, share in enumerate(PREVALENCES, start=1)}


# %%
# Calibrate thirty times for each guarantee and size, and look up the true rates.
def true_use(guarantee, n):
    """Return the flag rate over the capacity in each class, for a fresh calibration sample."""
    model = MulticlassCapacityClassifier(
        lda, capacities=capacities, cv="prefit", guarantee=guarantee, random_state=0
    )
    with warnings.catch_warnings():  # with few items, some classes are not flagged at all
        warnings.simplefilter("ignore", InsufficientCalibrationWarning)
        labels = model.fit(*draw(n)).predict(future)
    return np.bincount(labels, minlength=6)[1:] / len(future) / PREVALENCES


SIZES = (1_000, 4_000, 16_000)
use = {
    (guarantee, n): np.array([true_use(guarantee, n) for _ in range(30)])
    for guarantee in ("plug-in", "confident")
    for n in SIZES
}
for (guarantee, n), rates in use.items():
    over = (rates > 1).any(axis=1).mean()
    print(f"{guarantee:10} {n:6} items: some class over in {over:4.0%}, {rates.mean():.0%} used")

# %%
# Each dot is the fullest class of one calibration, relative to its capacity. Above the line, some
# class is over.
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for place, n in enumerate(SIZES):
    for shift, guarantee, colour in ((-0.15, "plug-in", "#e08e45"), (0.15, "confident", "#23689b")):
        fullest = use[guarantee, n].max(axis=1)
        across = place + shift + rng.uniform(-0.08, 0.08, size=fullest.size)
        label = guarantee if place == 0 else None
        axes.plot(across, fullest, "o", color=colour, alpha=0.6, markersize=5, label=label)
axes.axhline(1, color="black", linewidth=1)
axes.annotate("capacity", (2.45, 1.01), ha="right")
axes.set_xticks(range(len(SIZES)), [f"{n:,}" for n in SIZES])
axes.set(xlabel="calibration items", ylabel="fullest class: flags / capacity", ylim=(0, None))
axes.legend(frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
