"""
Tied scores
===========

Five nearest neighbours give six different scores. A threshold between two of them flags far too
many or far too few cases. A hash of each case lets some of the tied cases through, and not others.
"""

# %%
# The same model, calibrated in two ways: a tied block is left out as a whole, or split by a hash.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import make_fraud

X, y = make_fraud(20_000, prevalence=0.05, random_state=0)
X = StandardScaler().fit_transform(X)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
shares = (0.01, 0.02, 0.04, 0.06, 0.08)
used = {}
for ties in ("exclude", "hash"):
    model = CapacityClassifier(
        KNeighborsClassifier(5), capacity=Capacity.fraction(0.02), ties=ties, random_state=0
    ).fit(X_train, y_train)
    flags = [model.with_capacity(Capacity.fraction(share)).flag(X_test) for share in shares]
    used[ties] = np.array([flagged.mean() for flagged in flags])
print("different scores:", np.unique(model.score_samples(X_test)))

# %%
# A block that does not fit is left out as a whole. That is always safe, but wastes what is left.
# The hash depends on the case alone: a case gets the same answer alone, in a batch, and tomorrow.
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot([0, 0.09], [0, 0.09], color="#888888", linewidth=1)
for (ties, rate), marker in zip(used.items(), "os", strict=True):
    axes.plot(shares, rate, marker=marker, label=f'ties="{ties}"')
axes.set(xlabel="capacity", ylabel="flagged share of new cases")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
