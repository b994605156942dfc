"""Model files are read and written by a copy of skops that imports little and trusts less."""

import subprocess
import sys

CODE = """
import shortlist.tables, sys
from shortlist.models.files import _imported_estimators, load_skops
known = {f"{each.__module__}.{name}" for name, each in _imported_estimators()}
dumps = load_skops().dumps
assert "skops.io" not in sys.modules and "sklearn.gaussian_process" not in sys.modules
assert "numba" not in sys.modules, "fits of short tables need no compiled code"
import skops.io
from sklearn.linear_model import LogisticRegression
from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES as every
trusted_more = {name for name in known if name.startswith("sklearn.")} - set(every)
assert not trusted_more, trusted_more
assert any("gaussian_process" in name for name in every), "others get the whole list"
model = LogisticRegression(C=3)
assert skops.io.loads(dumps(model)).C == 3 and b"  " not in dumps(model)
"""


def test_the_copy_apart_trusts_less_and_leaves_that_of_others_alone():
    """It knows no estimator that skops does not trust, and others import skops with all of them."""
    run = [sys.executable, "-c", CODE]
    done = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    assert not done.returncode, done.stderr
