"""
Tied scores
===========

Five nearest neighbours give six different scores. A threshold between two of them flags far too
much or far too little; a hash of each case shares the tied ones out.
"""

# %%
# The same model, calibrated with a tied block left out whole and with the block shared out.
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
# A block that does not fit is left out whole, which is always safe, and wastes what is left. The
# hash depends on the case alone: it gets the same answer alone, in a batch, and tomorrow.
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
axes.plot([0, 0.09], [0, 0.09], color="#888888", linewidth=1)
for (ties, rate), marker in zip(used.items(), "os", strict=True):
    axes.plot(shares, rate, marker=marker, label=f'ties="{ties}"')
axes.set(xlabel="capacity", ylabel="flagged, on new cases")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
