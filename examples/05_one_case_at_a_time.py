"""
One case at a time
==================

Fifty reviews a day, five thousand payments a day, and scores that creep upwards as the world
changes. A fixed threshold flags more every day. A controller never flags more than fifty.
"""

# %%
# The controller gets the number of reviews and recent scores, but no labels.
import matplotlib.pyplot as plt

from shortlist import Capacity
from shortlist.online import BudgetController, replay, simulate_stream
from shortlist.plots import ReplayDisplay

stream = simulate_stream("drift")
budget = BudgetController(
    Capacity.count(50),
    period=86_400,
    expected_arrivals=5_000,
    calibration_scores=stream.calibration_scores,
)

# %%
# ``replay`` runs the controller on a recorded stream. Beside it: an oracle that knows each day
# beforehand, and the threshold that was right at the beginning.
table = replay(stream.scores, stream.y, stream.times, budget)
print(f"days over capacity: {table.overrun_share:.0%}")
print(f"found, of what hindsight finds: {table.relative_detection:.0%}")
print(f"a fixed threshold: {table.fixed_relative_detection:.0%}")
ReplayDisplay(table, name="budget").plot()
plt.show()
