"""The decision of a classifier as an ONNX file, which runs without Python.

Scores are compared as the classifier compares them: those that agree to about ten digits count as
equal (`_core/ranking.py`). A graph cannot hash. What a classifier decides by a hash of an item, the
fold whose model judges it, the order of tied items and their lots, a graph takes as more inputs. It
flags what the classifier flags, and does not run without them.

Scores of graph and classifier differ in their last digits. A row that lies so close to the edge of
what counts as equal that they could come to lie on two sides of it is not flagged.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import __version__
from .._core.arrays import Doubles
from .._core.extras import load_extra
from .._core.files import write_whole
from .._core.ids import check_ids, lots_of, tie_keys_of
from .._core.ranking import cell_of
from .._core.scoring import n_rows, rare_scores
from .._core.trees import Unsupported
from ..classifier import CapacityClassifier
from ..exceptions import ModelFileError
from ..thresholds.samples import RowFacts
from ._columns import Vocabulary
from ._onnx import Graph, ScoreGraph
from .blueprint import leaves_of, scores_of

onnxruntime = load_extra("onnxruntime", needed_for="Exporting to ONNX")

_OUTPUTS = ("score", "flag", "probability")
_TIE_KEY, _FOLD_KEY, _LOT = "tie_key", "fold_key", "lot"
# The margin is a small share of what counts as equal: fractions that forests often return, such as
# 7/10, lie 3 % of it away from an edge. It is wider if scores differ by more than a sixteenth of
# it, but never wider than a share of the largest calibration score.
_LEAST, _SAFETY = 2.0**-8, 16
_WIDEST = 2.0**-30  # about 1e-9
WEIGHS_WORK = (
    "This model weighs values, efforts or a worth, which a graph in ONNX does not. Fit one without "
    "value=..., effort=... and worth=..., or decide with: shortlist flag."
)


@dataclass(frozen=True)
class OnnxComparison:
    """The flags and scores of an exported graph and of its classifier on the same rows.

    `flagged_more` counts the rows that only the graph flags, `flagged_less` those that only the
    classifier flags.
    """

    n_items: int = 0
    flagged_by_both: int = 0
    flagged_more: int = 0
    flagged_less: int = 0
    largest_difference: float = 0.0


@dataclass(frozen=True)
class OnnxExport:
    """An exported graph.

    Attributes
    ----------
    inputs : dict
        Name and type of each input: "double" or "string".
    keys : list of str
        Further inputs, if the classifier hashes: "tie_key", "lot" and "fold_key", or some of them.
    outputs : list of str
        "score", "flag", and "probability" if the classifier has one.
    margin : float
        How far above a score must lie, so that rounding flags no more rows.
    largest_difference : float
        The largest difference between the scores of graph and classifier, on the rows given.
    """

    inputs: dict[str, str]
    keys: list[str]
    outputs: list[str]
    margin: float
    largest_difference: float


def export_onnx(
    classifier: CapacityClassifier, X: Any, path: Path, *, missing: str | None = None
) -> OnnxExport:
    """Write the decision of a classifier to an ONNX file; an error leaves no unfinished file.

    The graph takes one input per column, each of shape (n, 1): texts for categories (an empty text
    is missing) and 64-bit floats for all others (NaN is missing). The columns of an array are
    called x0, x1 and so on. The outputs are the score, the flag and, if the classifier has one, the
    probability.

    A classifier with folds picks the model that judges an item by a hash, and so it decides about
    items that tie with its threshold, or lie just below it. ONNX cannot hash. The graph takes these
    hashes as the inputs `fold_key`, `tie_key` and `lot`, of shape (n, 1), as far as it needs them,
    and flags the same items. With random numbers from 0 to 1 in their place, it flags other items,
    and keeps the promise as well.

    Parameters
    ----------
    classifier : CapacityClassifier
        Fitted. Its models can be ensembles of this package, linear models, networks, trees,
        forests, bagging and boosting of scikit-learn and LightGBM, and the aware forests,
        boosting and linear models; behind scikit-learn's imputers, scalers and encoders.
    X : array or data frame of shape (n_items, n_features)
        Rows on which to compare the graph with the classifier, before anything is written. They
        need no labels.
    path : Path
        Where to write.
    missing : str, default=None
        The text that stands for a missing category in `X`, if there is one.

    Returns
    -------
    OnnxExport
        Inputs, outputs, and how closely the scores agree.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.linear_model import LogisticRegression
    >>> from shortlist import Capacity, CapacityClassifier
    >>> from shortlist.datasets import make_fraud
    >>> from shortlist.models import compare_onnx, export_onnx
    >>> X, y = make_fraud(n_samples=2_000, random_state=0)
    >>> learner = LogisticRegression(max_iter=1_000)
    >>> classifier = CapacityClassifier(learner, capacity=Capacity.fraction(0.05))
    >>> path = Path(tempfile.mkdtemp()) / "fraud.onnx"
    >>> exported = export_onnx(classifier.fit(X, y), X, path)
    >>> exported.outputs
    ['score', 'flag', 'probability']
    >>> compared = compare_onnx(classifier, path, X)
    >>> compared.flagged_more, compared.flagged_less
    (0, 0)
    """
    content, exported = build_graph(classifier, X, missing=missing)
    with write_whole(path) as file:
        file.write(content)
    return exported


def compare_onnx(
    classifier: CapacityClassifier, path: Path, X: Any, *, ids: ArrayLike | None = None
) -> OnnxComparison:
    """Compare an exported graph with its classifier.

    Parameters
    ----------
    classifier : CapacityClassifier
        The classifier that was exported.
    path : Path
        The graph, made by :func:`export_onnx`.
    X : array or data frame of shape (n_items, n_features)
        The rows.
    ids : array-like of shape (n_items,), default=None
        Their ids, if the classifier was calibrated with ids.

    Returns
    -------
    OnnxComparison
        Numbers of flags, and the largest difference between scores.
    """
    return OnnxGraph.read(path).compare(classifier, X, ids=ids)


# --- making a graph ------------------------------------------------------------------------------


def build_graph(
    classifier: Any, X: Any, *, missing: str | None = None, about: dict[str, str] | None = None
) -> tuple[bytes, OnnxExport]:
    """Return the content of an ONNX file, compared with the classifier on the rows `X`."""
    rule = classifier.rule_
    _check_rule(rule)
    kinds = {name: _kind(column) for name, column in _columns_of(X).items()}
    _check_names(kinds)
    ranking, decides = classifier.list_estimators_, classifier.estimators_
    if len(rule.calibrations) == 1:
        decides = ranking
    graph, scores = _scored(classifier, ranking, decides, kinds, missing)
    noise = _noise(graph, dict(zip(scores, decides, strict=True)), classifier, X)
    found = [each.cuts for each in rule.calibrations]
    cuts = [(_cut(each.upper, noise), _cut(each.lower, noise), each.share) for each in found]
    margin = max(cut.margin for upper, lower, _ in cuts for cut in (upper, lower))
    _check_margin(margin, rule, noise)
    keys = _add_decision(graph, scores, cuts)
    outputs = ["score", "flag"]
    if classifier.response_method_ == "predict_proba":
        graph.output("probability", "score", "double")
        outputs.append("probability")
    properties = {
        "shortlist_version": __version__,
        "thresholds": json.dumps([upper.above for upper, _, _ in cuts]),
        "seed": str(rule.terms.seed),
    }
    content = graph.content(
        "Flags rows whose score is strictly above a threshold. The capacity is "
        f"{classifier.capacity_fraction_:.4g} of all rows, the guarantee {classifier.guarantee!r}.",
        properties | (about or {}),
    )
    ids = np.arange(n_rows(X)).astype(str) if rule.samples[0].keyed_by_ids else None
    compared = OnnxGraph(content).compare(classifier, X, ids=ids)
    if compared.flagged_more:
        raise ModelFileError(
            f"The exported graph flags {compared.flagged_more} of {compared.n_items} rows that "
            "the model does not flag. Nothing was written. Fit with another learner."
        )
    return content, OnnxExport(kinds, keys, outputs, margin, noise)


def _check_rule(rule: Any) -> None:
    weighs = [each.has_values or each.has_efforts for each in rule.calibrations]
    if any(weighs):
        raise ModelFileError(WEIGHS_WORK)
    if rule.segments is not None:
        raise ModelFileError("A model with capacities of segments cannot be exported to ONNX.")
    if rule.precision != np.float64:
        raise ModelFileError("A model with scores in single precision cannot be exported to ONNX.")


def _check_names(names: Any) -> None:
    taken = [name for name in names if name in (*_OUTPUTS, _TIE_KEY, _FOLD_KEY, _LOT)]
    if taken:
        raise ModelFileError(
            f"The column {taken[0]!r} has the name of an output or of a key. Rename it and fit "
            "again."
        )


def _scored(
    classifier: Any,
    ranking: list[Any],
    decides: list[Any],
    kinds: dict[str, str],
    missing: str | None,
) -> tuple[Graph, list[str]]:
    """Return a graph with the score of lists, and the names of the scores that decide."""
    graph = Graph()
    inputs = [graph.input(name, kind) for name, kind in kinds.items()]
    try:
        models = ranking if decides is ranking else [*ranking, *decides]
        nodes = scores_of(classifier, models, len(kinds))
        leaves = [leaf for node in nodes for leaf in leaves_of(node)]
        vocabulary = Vocabulary([feature for leaf in leaves for feature in leaf.features])
        builder = ScoreGraph(graph, vocabulary, inputs, missing)
        scores = [builder.score(node) for node in nodes]
    except Unsupported as error:
        raise ModelFileError(
            f"{error} has no ONNX form in double precision, so this model cannot be exported. Fit "
            "with --learner auto, or with another learner."
        ) from None
    graph.output("score", graph.mean(scores[: len(ranking)]), "double")
    return graph, scores[-len(decides) :]


def _noise(graph: Graph, models: dict[str, Any], classifier: Any, X: Any) -> float:
    """Return the largest difference between scores of a graph and of the classifier's models."""
    answers = OnnxGraph(graph.content("", {}, also=list(models))).run(X, {})
    options = {"rare_label": classifier.rare_label_, "response_method": classifier.response_method_}
    known = {name: rare_scores(model, X, **options) for name, model in models.items()}
    known["score"] = classifier.score_samples(X)
    return max(
        float(np.abs(answers[name].ravel() - scores).max(initial=0))
        for name, scores in known.items()
    )


class _Cut(NamedTuple):
    """A cut: scores above `above` lie before it, and those above `tied` if their key is smaller."""

    above: float
    tied: float
    key: float
    margin: float


#: Scores before the first cut are flagged, and those before the second if their lot is below this.
_Cuts = tuple[_Cut, _Cut, float]


def _cut(cut: Any, noise: float) -> _Cut:
    value = float(cut.value)
    if not math.isfinite(value):
        return _Cut(value, value, 0.0, 0.0)
    lower, upper = (float(end) for end in cell_of(value, np.dtype(np.float64)))
    margin = max(_SAFETY * noise, _LEAST * (upper - lower))
    above, tied = (float(np.nextafter(end + margin, np.inf)) for end in (value, lower))
    return _Cut(above, tied, cut.key, above - value)


def _check_margin(margin: float, rule: Any, noise: float) -> None:
    finite = rule.calibration_scores[np.isfinite(rule.calibration_scores)]
    if margin > _WIDEST * float(np.abs(finite).max(initial=0)):
        raise ModelFileError(
            f"The scores of the exported graph differ by up to {noise:.1e} from the model's, too "
            "much to decide alike. Nothing was written. Fit with another learner."
        )


def _add_decision(graph: Graph, scores: list[str], cuts: list[_Cuts]) -> list[str]:
    """Add the flag, by one threshold for the mean or by one for each fold; return the keys."""
    keys = []
    if any(upper.key > 0 or lower.key > 0 for upper, lower, _ in cuts):
        keys.append(graph.input(_TIE_KEY, "double"))
    if any(share > 0 for _, _, share in cuts):
        keys.append(graph.input(_LOT, "double"))
    compared = scores if len(cuts) > 1 else ["score"]
    flags = [_flag(graph, score, *own) for score, own in zip(compared, cuts, strict=True)]
    if len(flags) > 1:
        keys.append(graph.input(_FOLD_KEY, "double"))
        scaled = graph.add("Mul", _FOLD_KEY, graph.constant(float(len(flags))))
        fold = graph.add("Floor", scaled)
        picked = [
            graph.add("Equal", fold, graph.constant(float(place))) for place in range(len(flags))
        ]
        flags = [graph.add("And", *pair) for pair in zip(flags, picked, strict=True)]
    flag = reduce(lambda one, other: graph.add("Or", one, other), flags)
    graph.output("flag", flag, "bool")
    return keys


def _flag(graph: Graph, score: str, upper: _Cut, lower: _Cut, share: float) -> str:
    flag = _before(graph, score, upper)
    if share == 0:
        return flag
    drawn = graph.add("Less", _LOT, graph.constant(share))
    return graph.add("Or", flag, graph.add("And", _before(graph, score, lower), drawn))


def _before(graph: Graph, score: str, cut: _Cut) -> str:
    above = graph.add("Greater", score, graph.constant(cut.above))
    if cut.key == 0:
        return above
    first = graph.add("Less", _TIE_KEY, graph.constant(cut.key))
    tied = graph.add("And", graph.add("Greater", score, graph.constant(cut.tied)), first)
    return graph.add("Or", above, tied)


# --- running a graph -----------------------------------------------------------------------------


class OnnxGraph:
    """An exported graph that can be run."""

    def __init__(self, content: bytes) -> None:
        try:
            self._session = onnxruntime.InferenceSession(
                content, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # the errors of onnxruntime have no common class
            raise ModelFileError(f"onnxruntime cannot run this graph: {error}") from None

    @classmethod
    def read(cls, path: Path) -> OnnxGraph:
        """Read a graph from a file."""
        try:
            return cls(path.read_bytes())
        except OSError as error:
            raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from None

    def run(self, X: Any, keys: dict[str, Doubles]) -> dict[str, NDArray[Any]]:
        """Run the graph on the columns of a frame or array; return its outputs by name."""
        columns, session = _columns_of(X) | keys, self._session
        inputs = {
            column.name: _input(columns[column.name], column.type == "tensor(string)")
            for column in session.get_inputs()
        }
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, inputs), strict=True))

    def compare(self, classifier: Any, X: Any, *, ids: ArrayLike | None = None) -> OnnxComparison:
        """Compare the answers with those of a classifier."""
        answers = self.run(X, keys_for(classifier, X, ids))
        flagged = answers["flag"].ravel()
        by_model = classifier.decide(X, ids=ids).flagged
        scores = np.asarray(classifier.score_samples(X))
        return OnnxComparison(
            len(flagged),
            int((flagged & by_model).sum()),
            int((flagged & ~by_model).sum()),
            int((~flagged & by_model).sum()),
            float(np.abs(answers["score"].ravel() - scores).max(initial=0)),
        )


def keys_for(classifier: Any, X: Any, ids: ArrayLike | None) -> dict[str, Doubles]:
    """Return the keys by which a classifier decides about ties, draws, and picks a fold."""
    seed, every = classifier.rule_.terms.seed, np.arange(n_rows(X))
    tie_keys = tie_keys_of(X, ids, seed=seed)(every)
    return {
        _TIE_KEY: tie_keys,
        _LOT: lots_of(tie_keys),
        _FOLD_KEY: classifier.rule_.fold_keys(RowFacts(X, check_ids(ids, every.size)))(every),
    }


def _columns_of(X: Any) -> dict[str, Any]:
    if hasattr(X, "columns"):
        return {str(name): X[name] for name in X.columns}
    table = np.asarray(X)
    return {f"x{place}": table[:, place] for place in range(table.shape[1])}


def _kind(column: Any) -> str:
    return "double" if np.asarray(column).dtype.kind in "biuf" else "string"


def _input(column: Any, is_text: bool) -> NDArray[Any]:
    values = np.asarray(column)
    if not is_text:
        return values.astype(np.float64)[:, np.newaxis]
    texts = [value if isinstance(value, str) else "" for value in values.tolist()]
    return np.array(texts, dtype=object)[:, np.newaxis]
