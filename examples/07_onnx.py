"""
A decision without Python
=========================

The decision of a model as an ONNX graph. It runs in Java, in a browser or on a device, takes the
columns of the table, and flags what the model flags. Needs ``pip install
'shortlist[cli,onnx]'``.
"""

# %%
# A model of payments.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd

from shortlist import Capacity, CapacityClassifier
from shortlist.datasets import FRAUD_FEATURES, make_fraud
from shortlist.learners import make_learner
from shortlist.models import compare_onnx, export_onnx

X, y = make_fraud(12_000, prevalence=0.02, random_state=0)
payments = pd.DataFrame(X, columns=FRAUD_FEATURES)
old, new = payments.head(8_000), payments.tail(4_000)
classifier = CapacityClassifier(
    make_learner("boosting", random_state=0),
    capacity=Capacity.fraction(0.03),
    cv=0.5,
    random_state=0,
).fit(old, y[:8_000])

# %%
# Scores agree up to rounding, and flags are the same. A case so close to the threshold that
# rounding could decide about it is not flagged.
path = Path(tempfile.mkdtemp()) / "model.onnx"
exported = export_onnx(classifier, old, path)
print(f"margin {exported.margin:.1e}, largest difference {exported.largest_difference:.1e}")
compared = compare_onnx(classifier, path, new)
print(f"{compared.flagged_by_both} flagged by both, {compared.flagged_more} by the graph alone")

# %%
# Any ONNX runtime can run the graph. Each column is an input, and so are the hashes that decide
# about cases on the threshold. Without ids, random numbers keep the capacity as well.
session = onnxruntime.InferenceSession(path)
columns = {name: new[[name]].to_numpy(np.float64) for name in FRAUD_FEATURES}
keys = {name: np.random.default_rng(0).random((len(new), 1)) for name in exported.keys}
score, flag = (output.ravel() for output in session.run(["score", "flag"], columns | keys))
print(np.column_stack([score[:5].round(4), flag[:5]]))

# %%
# The scores of the graph, ranked: the red ones are flagged, and nothing below the threshold is.
ranked = np.argsort(-score)[:300]
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
for label, mask, colour in (("flagged", True, "#c8502d"), ("not flagged", False, "#9fb3c4")):
    places = np.flatnonzero(flag[ranked] == mask)
    axes.bar(places, score[ranked][places], width=1, color=colour, label=label)
threshold = classifier.threshold_
axes.axhline(threshold, color="#23689b")
axes.annotate("threshold", (299, threshold + 0.02), ha="right", color="#23689b")
axes.set(xlabel="rank of the payment", ylabel="score", xlim=(0, 300), ylim=(0, 1))
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
