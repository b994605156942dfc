"""
A decision without Python
=========================

The decision of a model as an ONNX graph: it runs in Java, in a browser or on a device, takes the
columns of the table, and flags no case that the model does not flag.
"""

# %%
# A model for a table of payments.
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd

from shortlist import Capacity
from shortlist.datasets import FRAUD_FEATURES, make_fraud
from shortlist.persistence import compare_onnx, export_onnx
from shortlist.tables import fit_table

folder = Path(tempfile.mkdtemp())
X, y = make_fraud(12_000, prevalence=0.02, random_state=0)
payments = pd.DataFrame(X, columns=FRAUD_FEATURES)
payments.assign(fraud=y).head(8_000).to_csv(folder / "old.csv", index=False)
payments.tail(4_000).to_csv(folder / "new.csv", index=False)
model = fit_table(
    folder / "old.csv", target="fraud", capacity=Capacity.fraction(0.03), learner="boosting"
).model

# %%
# Scores agree to the last digits. The threshold lies a billionth higher than the model's own, more
# than any rounding: a case so close to it is left out rather than flagged by accident.
exported = export_onnx(model, folder / "model.onnx", ties="exclude")
print(f"margin {exported.margin:.1e}, largest difference {exported.largest_difference:.1e}")
compared = compare_onnx(model, folder / "model.onnx", folder / "new.csv")
print(f"{compared.flagged_by_both} flagged by both, {compared.flagged_more} by the graph alone")

# %%
# Anything that runs ONNX can ask it; each column is an input.
session = onnxruntime.InferenceSession(folder / "model.onnx")
first = {name: payments.tail(4_000)[[name]].to_numpy(np.float64)[:5] for name in FRAUD_FEATURES}
score, flag = session.run(["score", "flag"], first)
print(np.column_stack([score.round(4), flag]))
