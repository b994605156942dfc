"""The studies find the credit data beside the checkout."""

import os
from pathlib import Path

import pytest

from studies import credit_data


@pytest.mark.skipif(
    "SHORTLIST_DATA" not in os.environ, reason="the credit data are missing; set SHORTLIST_DATA"
)
def test_data_beside_the_checkout_need_no_variable(monkeypatch):
    """And are not downloaded; a variable that is set comes first."""
    beside = Path(os.environ["SHORTLIST_DATA"])
    monkeypatch.setattr(credit_data, "_BESIDE_THE_CHECKOUT", beside)
    monkeypatch.setenv("SHORTLIST_DATA", "elsewhere")  # restored afterwards, whatever is set here
    monkeypatch.delenv("SHORTLIST_DATA")
    X, y = credit_data.clients.__wrapped__()
    assert len(X) == len(y) == 30_000
    assert os.environ["SHORTLIST_DATA"] == str(beside)
    monkeypatch.setenv("SHORTLIST_DATA", "elsewhere")
    with pytest.raises(OSError, match="elsewhere"):
        credit_data.clients.__wrapped__()


def test_the_paper_and_its_summary_ask_there():
    """Not the package, which knows the variable only."""
    for name in ("credit_protocol", "summary"):
        text = (Path(credit_data.__file__).parent / "paper" / f"{name}.py").read_text()
        assert "load_credit_default" not in text
        assert "import clients" in text
