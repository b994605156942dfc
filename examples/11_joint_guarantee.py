"""How often some class exceeds its capacity on future items: plug-in against confident.

python examples/11_joint_guarantee.py            # 300 calibrations of each size
python examples/11_joint_guarantee.py --trials 50
"""

from __future__ import annotations

import argparse

from shortlist.experiments.joint_guarantee import JointGuaranteeConfig, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=300)
    table = run(JointGuaranteeConfig(n_trials=parser.parse_args().trials))
    print(
        "| guarantee | calibration items | some class over | rate / capacity | objective / best |"
    )
    print("|---|---|---|---|---|")
    for row in table:
        print(
            f"| {row.guarantee} | {row.n_calibration} | {row.any_class_over:.3f} "
            f"| {row.rate_over_capacity:.2f} | {row.objective_over_optimum:.3f} |"
        )
