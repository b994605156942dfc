"""
A promise about all classes at once
===================================

How often does some class of five exceed its capacity on future items? With the plug-in rule
nearly always, if only by a little; with the confident one hardly ever, at a price that falls with
the size of the calibration sample. The user guide has the same table from 300
calibrations of each size.
"""

# %%
# Each row repeats the calibration on fresh items; the true rates are known.
import sys

from shortlist.experiments.joint_guarantee import JointGuaranteeConfig, run

n_trials = int(sys.argv[1]) if len(sys.argv) > 1 else 30
table = run(JointGuaranteeConfig(n_trials=n_trials))
print(f"{'guarantee':10} {'items':>6} {'some over':>9} {'rate / capacity':>15} {'objective':>9}")
for row in table:
    print(
        f"{row.guarantee:10} {row.n_calibration:6} {row.any_class_over:9.2f} "
        f"{row.rate_over_capacity:15.2f} {row.objective_over_optimum:9.3f}"
    )
