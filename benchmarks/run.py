"""Run all benchmarks and print their tables: `make bench`, or `make bench ARGS=--quick`."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import numpy
import sklearn

import bench_assignment
import bench_aware
import bench_classifier
import bench_cli
import bench_fit
import bench_import
import bench_learners
import bench_online
import bench_peers
import bench_reproduce
import bench_service
import bench_single_row
import bench_thresholds
import shortlist

# The credit data, where they lie beside the checkout.
DATA = Path(__file__).parents[2] / "shared" / "data"


def main(*, quick: bool) -> None:
    """Print one section per benchmark."""
    if DATA.is_dir():
        os.environ.setdefault("SHORTLIST_DATA", str(DATA))
    versions = f"Python {platform.python_version()}, NumPy {numpy.__version__}"
    print(f"shortlist {shortlist.__version__}, {versions}, scikit-learn {sklearn.__version__}\n")
    sections = {
        bench_thresholds: lambda: bench_thresholds.main(*([10**6] if quick else [])),
        bench_classifier: lambda: bench_classifier.main(*([(10_000, 20_000)] if quick else [])),
        bench_assignment: lambda: bench_assignment.main(*([10**5] if quick else [])),
        bench_fit: lambda: bench_fit.main(*([(1_000,)] if quick else [])),
        bench_online: lambda: bench_online.main(quick=quick),
        bench_learners: lambda: bench_learners.main(*([20_000, 2_000] if quick else [])),
        bench_cli: lambda: bench_cli.main(10**5 if quick else 10**6),
        bench_single_row: lambda: bench_single_row.main(
            *([("logistic", "forest"), 4_000] if quick else [])
        ),
        bench_import: lambda: bench_import.main(*([3] if quick else [])),
        bench_aware: lambda: bench_aware.main(
            *([((300, 2_000), (700, 4_000)), (1_000, 10_000)] if quick else [])
        ),
        bench_peers: lambda: bench_peers.main(*([2] if quick else [])),
        bench_service: lambda: bench_service.main(*([3.0] if quick else [])),
        bench_reproduce: lambda: bench_reproduce.main(*([50] if quick else [])),
    }
    for module, run in sections.items():
        print(f"## {module.__doc__.splitlines()[0]}\n\n{run()}\n", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or two")
    main(quick=parser.parse_args().quick)
