"""
Choosing a capacity
===================

What would more reviewers find? The curve answers for every capacity at once, and its slope is what
one more review finds.
"""

# %%
# Half of the payments are for the fit. The curve comes from payments that it has not seen.
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from shortlist import Capacity, CapacityClassifier, CapacityCurveDisplay
from shortlist.datasets import make_fraud

X, y = make_fraud(40_000, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, test_size=0.5, random_state=0)
capacity = Capacity.fraction(0.02)
model = CapacityClassifier(
    LogisticRegression(max_iter=1_000), capacity=capacity, random_state=0
).fit(X_train, y_train)

# %%
# The band is a 95 % interval for each capacity: for the detection when this share of new payments
# is reviewed. The dash-dotted line, on the right scale, is the number of frauds that one more
# review would find: nearly one at first, and hardly any later.
display = CapacityCurveDisplay.from_estimator(
    model, X_test, y_test, max_fraction=0.08, x="flags", marginal=True, capacity=capacity
)
plt.show()

# %%
# If a found fraud is worth 400 and a review costs 60, reviews pay as long as one more finds more
# than 60 / 400 of a fraud.
curve = display.curve
pays = curve.marginal > 60 / 400
print(f"{curve.n_flagged[pays].max()} reviews of {curve.n_items:,} payments pay for themselves")
for share in (0.005, 0.01, 0.02, 0.04):
    row = curve.at(Capacity.fraction(share))
    profit = 400 * row["n_found"] - 60 * row["n_flagged"]
    print(
        f"{row['n_flagged']:4} reviews: {row['detection']:.0%} of the frauds, profit {profit:,.0f}"
    )

# %%
# The capacity can change without a new fit: the models stay, and their thresholds move.
stricter = model.with_capacity(Capacity.fraction(0.01))
print(f"{model.thresholds_.mean():.3f}, {stricter.thresholds_.mean():.3f}")
