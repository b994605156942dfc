"""MulticlassCapacityClassifier: several capacities, one rule."""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from posteriors import Posteriors, draw
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from shortlist import Capacity, CapacityClassifier, MulticlassCapacityClassifier
from shortlist.exceptions import CapacityError, InsufficientCalibrationWarning
from shortlist.multiclass._capacities import JointCapacities
from shortlist.multiclass._rule import JointRule, JointSample
from shortlist.thresholds.guarantees import confident_place

TWO = {1: Capacity.fraction(0.02), 2: Capacity.fraction(0.01)}


# The rule of the paper, whose flags can be counted by hand.
PAPER = {"guarantee": "plug-in", "ties": "exclude"}


def fitted(X, y, labels=(0, 1, 2), segments=None, ids=None, **options):
    """Calibrate posteriors that are the input."""
    options = {"capacities": TWO, "random_state": 0, **PAPER, **options}
    model = MulticlassCapacityClassifier(FrozenEstimator(Posteriors(labels).fit(X)), **options)
    return model.fit(X, y, segments=segments, ids=ids)


@pytest.fixture(scope="module")
def items():
    """Return posteriors and labels for calibration, and posteriors to decide about."""
    rng = np.random.default_rng(0)
    return *draw(2_000, rng), draw(2_000, rng)[0]


def test_one_rare_class_without_the_majority_is_the_capacity_classifier(items):
    """Both flag the same calibration items and the same new items, for any capacity."""
    X, y, new = items
    for share in (0.003, 0.02, 0.3):
        joint = fitted(X, y, capacities={1: Capacity.fraction(share)}, majority=False)
        single = CapacityClassifier(
            FrozenEstimator(Posteriors().fit(X)),
            capacity=Capacity.fraction(share),
            rare_label=1,
            **PAPER,
        ).fit(X, y)
        assert_array_equal(joint.predict(X) == 1, single.flag(X))
        assert_array_equal(joint.predict(new), single.predict(new))


def test_two_classes_with_the_majority_are_the_same_rule_where_the_capacity_binds(rng):
    """Otherwise the capacity classifier fills its capacity, and this one stops at the optimum."""
    X, y = draw(2_000, rng, labels=(0, 1))
    new, _ = draw(2_000, rng, labels=(0, 1))
    for share in (0.005, 0.01):
        joint = fitted(X, y, (0, 1), capacities={1: Capacity.fraction(share)})
        single = CapacityClassifier(
            FrozenEstimator(Posteriors((0, 1)).fit(X)), capacity=Capacity.fraction(share), **PAPER
        ).fit(X, y)
        assert joint.prices_[1] > 0
        assert_array_equal(joint.predict(new), single.predict(new))
    loose = fitted(X, y, (0, 1), capacities={1: Capacity.fraction(0.5)})
    assert loose.prices_ == {1: 0.0}
    assert 0 < loose.flag(X).mean() < 0.5


def test_capacities_that_do_not_bind_have_no_price(items):
    """Then the rule is the argmax of the weighted posteriors."""
    X, y, new = items
    model = fitted(X, y, capacities={1: Capacity.fraction(1), 2: None}, total=Capacity.fraction(1))
    assert model.prices_ == {1: 0.0, 2: 0.0}
    assert model.total_price_ == 0
    shares = [1 - sum(model.prevalences_.values()), *model.prevalences_.values()]
    assert_array_equal(model.predict(new), (new / shares).argmax(axis=1))


def test_all_capacities_hold_on_the_calibration_items(items):
    """They hold by class, in total and by segment, and a binding one is nearly used up."""
    X, y, _ = items
    segments = np.where(np.arange(len(X)) % 3, "north", "south")
    limits = {"north": Capacity.fraction(0.02), "south": Capacity.fraction(0.03)}
    model = fitted(
        X, y, segments=segments, total=Capacity.fraction(0.025), segment_capacities=limits
    )
    predicted = model.predict(X, segments=segments)
    flagged = predicted != 0
    assert (predicted == 1).sum() <= 40
    assert (predicted == 2).sum() <= 20
    assert 45 <= flagged.sum() <= 50
    for name, limit in limits.items():
        own = segments == name
        assert flagged[own].sum() <= limit.max_flags(own.sum())
    assert set(model.segment_prices_) == set(limits)


@pytest.mark.parametrize("guarantee", ["plug-in", "confident"])
@pytest.mark.parametrize("ties", ["exclude", "hash"])
def test_coarse_posteriors_never_overrun_and_the_hash_uses_the_capacity(rng, ties, guarantee):
    """Blocks of equal posteriors at the price are left alone, or shared out by the hash."""
    X, y = draw(6_000, rng, decimals=1)
    ids = np.arange(len(X))
    model = fitted(X, y, ids=ids, ties=ties, guarantee=guarantee)
    counts = [(model.predict(X, ids=ids) == label).sum() for label in (1, 2)]
    assert counts[0] <= 120
    assert counts[1] <= 60
    if ties == "hash" and guarantee == "plug-in":
        assert counts[0] >= 115
        assert counts[1] >= 55


def test_one_item_at_a_time_gets_the_same_answer(rng):
    """An item gets the same label alone, in a batch and in another order."""
    X, y = draw(500, rng, decimals=1)
    model = fitted(X, y, ties="hash", capacities=Capacity.fraction(0.05))
    batch = model.predict(X)
    assert_array_equal(np.concatenate([model.predict(X[[i]]) for i in range(500)]), batch)
    assert_array_equal(model.predict(X[::-1])[::-1], batch)


def test_noisy_posteriors_do_not_move_a_block(rng):
    """Tied items stay tied under noise in the last bits."""
    X, y = draw(2_000, rng, decimals=1)

    class Noisy(Posteriors):
        def predict_proba(self, X):
            shift = np.random.default_rng().integers(-3, 4, size=(len(X), 3))
            return super().predict_proba(X) * (1 + shift * 2.0**-53)

    for ties in ("exclude", "hash"):
        model = MulticlassCapacityClassifier(
            FrozenEstimator(Noisy().fit(X)), capacities=TWO, ties=ties
        ).fit(X, y)
        answers = [model.predict(X) for _ in range(10)]
        assert all((again == answers[0]).all() for again in answers)
        assert (answers[0] == 1).sum() <= 40


def test_a_capacity_of_zero_is_never_used(items):
    """Even an item that is more certain than any in calibration is not flagged."""
    X, y, _ = items
    model = fitted(X, y, capacities={1: Capacity.fraction(0), 2: Capacity.fraction(0.01)})
    assert model.predict([[0, 1, 0], [0, 0, 1]]).tolist() == [0, 2]
    nothing = fitted(X, y, total=Capacity.fraction(0))
    assert nothing.predict([[0, 1, 0], [0, 0, 1]]).tolist() == [0, 0]


def test_class_weights_move_the_prices(items):
    """The class with more weight gets more of the total."""
    X, y, _ = items
    total, loose = Capacity.fraction(0.02), {1: None, 2: None}
    even = fitted(X, y, capacities=loose, total=total)
    heavy = fitted(X, y, capacities=loose, total=total, class_weights={2: 5})
    assert (heavy.predict(X) == 2).sum() > (even.predict(X) == 2).sum()
    assert (heavy.predict(X) != 0).sum() <= 40


def test_prices_say_what_one_more_flag_is_worth(items):
    """One more flag in the calibration sample raises the objective by price / n."""
    X, y, _ = items
    model = fitted(X, y)
    more = fitted(X, y, capacities={**TWO, 1: Capacity.count(41, per=2_000)})
    # A row between two classes at the lower price is left alone: compare the optima themselves.
    gained = (more.select(X) == 1).sum() - (model.select(X) == 1).sum()
    assert gained == 1
    worth = [_worth(m, X) for m in (model, more)]
    assert_allclose(worth[1] - worth[0], model.prices_[1], rtol=1e-6)


def _worth(model, X):
    """Return the summed value of the best assignment within the capacities."""
    values = model._valuation.sample(X, np.zeros(len(X), dtype=np.intp))
    columns = model.select(X)
    chosen = np.column_stack([np.zeros(len(X)), values.gains])[np.arange(len(X)), columns]
    return chosen.sum()


def test_confident_flags_less(items):
    """Every class is flagged less often than its capacity."""
    X, y, new = items
    plug_in, sure = fitted(X, y), fitted(X, y, guarantee="confident")
    for label in (1, 2):
        assert 0 < (sure.predict(new) == label).sum() < (plug_in.predict(new) == label).sum()


def test_too_few_items_for_the_guarantee_flag_nothing_and_warn(rng):
    """The warning names the capacity and the number of items it needs."""
    X, y = draw(300, rng)
    with pytest.warns(
        InsufficientCalibrationWarning, match=r"fraction\(0.01\), .* needs more .* than 150"
    ):
        model = fitted(X, y, guarantee="confident", capacities={**TWO, 1: Capacity.fraction(0.2)})
    assert not (model.predict(X) == 2).any()


def test_a_class_without_enough_items_does_not_compete(items):
    """Its items go to the other classes, in calibration and in use; no cut is too low."""
    X, y, new = items
    tiny = {1: Capacity.fraction(0.02), 2: Capacity.fraction(0.0001)}
    with pytest.warns(
        InsufficientCalibrationWarning, match=r"fraction\(0.0001\), .* needs more .* than 1000"
    ):
        model = fitted(X, y, guarantee="confident", capacities=tiny)
    half = np.random.default_rng(0).permutation(2_000)[1_000:]
    flagged = model.rule_.decide(model.rule_.sample.take(half))[0]
    assert (flagged == 1).sum() <= confident_place(1_000, Fraction(1, 50), error=0.05 / 2).k
    assert not (model.predict(new) == 2).any()


def test_confident_multiples_cover_the_unknown_prevalence(items):
    """A lower bound of the prevalence costs some capacity."""
    X, y, _ = items
    multiple = fitted(X, y, guarantee="confident", capacities=Capacity.multiple(1))
    stated = {label: Capacity.fraction(share) for label, share in multiple.prevalences_.items()}
    fraction = fitted(X, y, guarantee="confident", capacities=stated)
    assert multiple.flag(X).sum() < fraction.flag(X).sum()


def test_decisions_come_in_one_pass(items):
    """Labels, columns, flags and surplus agree with each other and with predict."""
    X, y, new = items
    model = fitted(X, y)
    decided = model.decide(new)
    assert_array_equal(decided.labels, model.predict(new))
    assert_array_equal(decided.flagged, model.flag(new))
    assert_array_equal(np.array([0, *model.rare_labels_])[decided.columns], decided.labels)
    assert_array_equal(decided.posteriors, new)
    assert (decided.surplus[decided.flagged] > 0).all()
    closed = model.with_capacities({1: Capacity.fraction(0), 2: Capacity.fraction(0)})
    assert np.isneginf(closed.decide(new).surplus).all()


def test_the_rule_holds_what_calibration_learned(items):
    """Its prices are those of the classifier, and it can be calibrated on its own."""
    X, y, _ = items
    model = fitted(X, y, guarantee="confident", confidence=0.9)
    rule = model.rule_
    assert len(rule.sample) == 2_000
    again = JointRule.calibrate(
        rule.sample, rule.capacities, guarantee="confident", confidence=0.9, random_state=0
    )
    assert_array_equal(again.prices, rule.prices)
    assert list(model.prices_) == [1, 2]
    looser = model.set_params(guarantee="plug-in").with_capacities()
    assert looser.prices_ == fitted(X, y).prices_
    with pytest.raises(ValueError, match="guarantee must be one of 'plug-in', 'expected'"):
        JointRule.calibrate(rule.sample, rule.capacities, guarantee="next-batch")
    with pytest.raises(ValueError, match="at least one item"):
        JointRule.calibrate(rule.sample.take(np.array([], dtype=np.intp)), rule.capacities)


class TestBatches:
    """select: the exact optimum of a batch."""

    def test_it_fills_the_capacities_exactly(self, items):
        """Every capacity is used up where flagging is worth it."""
        X, y, new = items
        chosen = fitted(X, y, majority=False).select(new)
        assert [(chosen == label).sum() for label in (1, 2)] == [40, 20]

    def test_counts_of_the_batch_can_be_given(self, items):
        """Counts limit the batch by class and in total, and segments keep their shares."""
        X, y, new = items
        segments = np.arange(2_000) % 2
        model = fitted(
            X,
            y,
            majority=False,
            segments=segments,
            segment_capacities={0: Capacity.count(5, per=1_000), 1: Capacity.fraction(0.5)},
        )
        chosen = model.select(
            new,
            {1: Capacity.count(7), 2: Capacity.count(9)},
            total=Capacity.count(12),
            segments=segments,
        )
        flagged = chosen != 0
        assert flagged.sum() == 12
        assert flagged[segments == 0].sum() <= 5
        assert (chosen == 1).sum() <= 7

    def test_values_weight_the_cases(self, items):
        """Cases without value are left alone."""
        X, y, new = items
        amounts = np.arange(2_000) % 2
        chosen = fitted(X, y).select(new, values=amounts)
        assert (chosen != 0).any()
        assert not (chosen != 0)[amounts == 0].any()

    def test_the_row_order_does_not_matter(self, rng):
        """Shuffled rows with their ids get the same labels."""
        X, y = draw(600, rng, decimals=1)
        model, ids = fitted(X, y), np.arange(600)
        order = rng.permutation(600)
        chosen = model.select(X, ids=ids)
        assert_array_equal(model.select(X[order], ids=ids[order]), chosen[order])


class TestSegments:
    """Each segment keeps its own capacity."""

    LIMITS = {"north": Capacity.fraction(0.01), "south": Capacity.fraction(0.05)}  # noqa: RUF012

    def test_binary_problems_have_segments_too(self, rng):
        """With segment capacities alone, every segment has its own threshold."""
        X, y = draw(3_000, rng, labels=("good", "suspect"))
        segments = rng.choice(["north", "south"], size=3_000)
        model = fitted(
            X,
            y,
            ("good", "suspect"),
            segments=segments,
            capacities={"suspect": None},
            segment_capacities=self.LIMITS,
            majority=False,
        )
        for name, limit in self.LIMITS.items():
            own = segments == name
            single = CapacityClassifier(
                FrozenEstimator(Posteriors(("good", "suspect")).fit(X)),
                capacity=limit,
                rare_label="suspect",
                **PAPER,
            ).fit(X[own], y[own])
            assert_array_equal(model.flag(X[own], segments=segments[own]), single.flag(X[own]))

    def test_segments_that_were_not_named_need_a_default(self, items):
        """Without a default, such a segment is an error in fit and in predict."""
        X, y, new = items
        segments = np.where(np.arange(2_000) % 2, "north", "south")
        strict = fitted(X, y, segments=segments, segment_capacities=self.LIMITS)
        with pytest.raises(CapacityError, match="'west' at rows 0, 1, 2, 3, 4 and 1995 more"):
            strict.predict(new, segments=["west"] * 2_000)
        with pytest.raises(CapacityError, match="no capacity"):
            fitted(X, y, segments=segments, segment_capacities={"north": Capacity.fraction(0.1)})
        with pytest.warns(InsufficientCalibrationWarning, match="belongs to other segments"):
            default = fitted(
                X,
                y,
                segments=segments,
                capacities={1: None, 2: None},
                segment_capacities=self.LIMITS,
                default_segment_capacity=Capacity.fraction(0.02),
            )
        # No calibration item is from another segment, and nothing says what to flag there.
        assert not default.flag(X, segments=["west"] * 2_000).any()
        assert None in default.segment_prices_

    def test_segments_not_named_are_calibrated_together(self, items):
        """Their items share one price."""
        X, y, _ = items
        segments = np.array(["north", "south", "west", "east"])[np.arange(2_000) % 4]
        model = fitted(
            X,
            y,
            segments=segments,
            capacities={1: None, 2: None},
            segment_capacities=self.LIMITS,
            default_segment_capacity=Capacity.fraction(0.03),
        )
        elsewhere = np.isin(segments, ["west", "east"])
        assert 25 <= model.flag(X, segments=segments)[elsewhere].sum() <= 30

    def test_a_segment_may_have_no_limit_and_limits_may_change(self, items):
        """None means no limit; recalibration takes new limits, in any order."""
        X, y, _ = items
        segments = np.where(np.arange(2_000) % 2, "north", "south")
        loose = fitted(
            X,
            y,
            segments=segments,
            capacities={1: None, 2: None},
            segment_capacities={"north": Capacity.fraction(0.01), "south": None},
        )
        flagged = loose.flag(X, segments=segments)
        assert flagged[segments == "north"].sum() <= 10
        assert flagged[segments == "south"].sum() > 50
        assert loose.segment_prices_["south"] == 0
        limits = {"south": Capacity.fraction(0.02), "north": Capacity.fraction(0.03)}
        changed = loose.set_params(segment_capacities=limits).recalibrate(X, segments=segments)
        flagged = changed.flag(X, segments=segments)
        assert 15 <= flagged[segments == "south"].sum() <= 20
        assert 25 <= flagged[segments == "north"].sum() <= 30

    def test_missing_segments_are_an_error(self, items):
        """Missing segments, missing values among them, and a wrong number raise errors."""
        X, y, _ = items
        with pytest.raises(ValueError, match="segments are missing"):
            fitted(X, y, segment_capacities=self.LIMITS)
        names = ["north"] * 3 + [None] + ["south"] * 1_996
        with pytest.raises(ValueError, match="found None or NaN at row 3"):
            fitted(X, y, segments=names, segment_capacities=self.LIMITS)
        with pytest.raises(ValueError, match="each of the 2000 items; got 2"):
            fitted(X, y, segments=["north", "south"], segment_capacities=self.LIMITS)
        with pytest.raises(ValueError, match="would not be used"):
            fitted(X, y, segments=["north"] * 2_000)

    @pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pd.Categorical])
    def test_they_come_in_any_column(self, items, make):
        """Lists, arrays and columns of data frames give the same prices."""
        X, y, _ = items
        names = ["north", "south"] * 1_000
        model = fitted(X, y, segments=make(names), segment_capacities=self.LIMITS)
        expected = fitted(X, y, segments=names, segment_capacities=self.LIMITS)
        assert model.segment_prices_ == expected.segment_prices_

    def test_missing_values_of_nullable_columns_are_an_error(self, items):
        """pandas.NA counts as missing, although it cannot be compared."""
        X, y, _ = items
        names = pd.Series([pd.NA] + ["north"] * 1_999, dtype="string")
        with pytest.raises(ValueError, match="None or NaN at row 0"):
            fitted(X, y, segments=names, segment_capacities=self.LIMITS)

    def test_they_are_routed_by_request(self, items):
        """Metadata routing passes them through a pipeline to fit and predict."""
        X, y, _ = items
        segments = np.where(np.arange(2_000) % 2, "north", "south")
        with sklearn.config_context(enable_metadata_routing=True):
            model = MulticlassCapacityClassifier(
                GaussianNB(), capacities=TWO, segment_capacities=self.LIMITS, random_state=0
            )
            model.set_fit_request(segments=True).set_predict_request(segments=True)
            routed = make_pipeline(StandardScaler(), model).fit(X[:, 1:], y, segments=segments)
            flagged = routed.predict(X[:, 1:], segments=segments) != 0
        assert flagged[segments == "south"].sum() > flagged[segments == "north"].sum() > 0


def test_new_capacities_need_no_data(items):
    """The result is a copy with other prices; the original keeps its own."""
    X, y, new = items
    model = fitted(X, y)
    more = model.with_capacities({2: Capacity.fraction(0.05), 1: Capacity.fraction(0.02)})
    again = fitted(X, y, capacities={1: Capacity.fraction(0.02), 2: Capacity.fraction(0.05)})
    assert more.prices_ == again.prices_
    assert model.prices_ == fitted(X, y).prices_
    scarce = model.with_capacities(total=Capacity.fraction(0.01))
    assert np.isin(scarce.select(X), [1, 2]).sum() == 20
    assert_array_equal(more.predict(new), again.predict(new))
    with pytest.raises(CapacityError, match=r"must name the rare labels of fit, \[1, 2\]"):
        model.with_capacities({1: Capacity.fraction(0.1)})


def test_recalibration_needs_no_labels(items):
    """The new items set the prices."""
    X, y, new = items
    model = fitted(X, y).recalibrate(new)
    flagged = model.predict(new)
    assert 38 <= (flagged == 1).sum() <= 40
    assert 18 <= (flagged == 2).sum() <= 20


def test_a_recalibration_that_fails_changes_nothing(items):
    """The classifier still decides as before."""
    X, y, new = items
    model = fitted(X, y)
    before = model.predict(new)
    model.set_params(capacities={7: Capacity.fraction(0.1)})
    with pytest.raises(CapacityError, match="which do not occur among the labels"):
        model.recalibrate(new)
    assert_array_equal(model.predict(new), before)


def test_parameters_that_were_set_since_count_in_recalibration_alone(items):
    """Ties that calibration left out stay out; and what cannot be is refused."""
    X, y, _ = items
    model = fitted(np.round(X, 1), y)
    before = model.predict(np.round(X, 1))
    assert_array_equal(model.set_params(ties="hash").predict(np.round(X, 1)), before)
    with pytest.raises(ValueError, match="ties must be one of"):
        model.set_params(ties="sometimes").recalibrate(X)


@pytest.mark.parametrize("cv", [0.5, 3, KFold(3), "prefit"])
def test_models_are_fitted_cross_fitted_or_taken_as_they_are(items, cv):
    """For every source of posteriors, the flag rates are near the capacities."""
    X, y, _ = items
    estimator = GaussianNB()
    if cv == "prefit":
        estimator = estimator.fit(X, y)
    capacities = {1: Capacity.fraction(0.02), 2: Capacity.fraction(0.02)}
    model = MulticlassCapacityClassifier(
        estimator, capacities=capacities, cv=cv, random_state=0
    ).fit(X, y)
    for label in capacities:
        assert 0.005 <= (model.predict(X) == label).mean() <= 0.035


def test_frames_pipelines_pickles_and_clones(items):
    """Data frames, clones, pickles and cross-validation work."""
    X, y, _ = items
    frame = pd.DataFrame(X[:, 1:], columns=["a", "b"])
    words = np.array(["fine", "fraud", "waste"])[y]
    model = MulticlassCapacityClassifier(
        KNeighborsClassifier(), capacities=Capacity.multiple(1), ties="hash", random_state=0
    )
    fitted_model = clone(model).fit(frame, words)
    assert fitted_model.feature_names_in_.tolist() == ["a", "b"]
    assert fitted_model.rare_labels_ == ["fraud", "waste"]
    loaded = pickle.loads(pickle.dumps(fitted_model))
    assert_array_equal(loaded.predict(frame), fitted_model.predict(frame))
    assert_array_equal(fitted_model.flag(frame), fitted_model.predict(frame) != "fine")
    assert cross_val_score(model, frame, words, cv=2).min() > 0.5


VALID = {"capacities": TWO}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"capacities": {3: Capacity.fraction(0.1)}}, CapacityError, "names 3, which do not occur"),
        ({"capacities": {"1": Capacity.fraction(0.1)}}, CapacityError, "labels: 0, 1, 2"),
        ({"capacities": {}}, CapacityError, "names no rare label"),
        ({"capacities": {1: 0.1}}, CapacityError, "must be a Capacity"),
        ({"capacities": 0.1}, CapacityError, "a dict from rare labels"),
        ({"capacities": {1: None}}, CapacityError, "No capacity was given"),
        ({"capacities": {1: Capacity.count(5)}}, CapacityError, "Say how many items"),
        (
            {"capacities": dict.fromkeys(range(3), Capacity.fraction(0.1))},
            CapacityError,
            "names every label",
        ),
        ({"total": 5}, CapacityError, "must be a Capacity"),
        ({"segment_capacities": [1]}, CapacityError, "a dict from segments"),
        ({"segment_capacities": {}}, CapacityError, "names no segment"),
        ({"default_segment_capacity": Capacity.fraction(0.1)}, CapacityError, "without segment_"),
        ({"guarantee": "next-batch"}, ValueError, "'plug-in', 'expected', 'confident'"),
        ({"ties": "random"}, ValueError, "ties must be"),
        ({"confidence": 1}, ValueError, "strictly between 0 and 1"),
        ({"majority": 2}, ValueError, "majority must be True or False"),
        ({"class_weights": {0: 2}}, ValueError, "has no capacity"),
        ({"class_weights": {1: -2}}, ValueError, "must be greater than 0"),
        ({"cv": 1.5}, ValueError, "share of the data held out"),
        ({"cv": "loo"}, ValueError, "cv must be"),
        ({"estimator": LinearSVC()}, ValueError, "has no predict_proba"),
        ({"cv": RepeatedStratifiedKFold(n_splits=2)}, ValueError, "at most once"),
    ],
)
def test_errors_say_what_to_do(items, options, error, message):
    """The message names the argument, its value and what is needed."""
    X, y, _ = items
    options = {"estimator": LogisticRegression(), **VALID, **options}
    model = MulticlassCapacityClassifier(options.pop("estimator"), **options)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_errors_about_the_data(items):
    """Unknown labels, single items, NaN posteriors and inconsistent ids raise errors."""
    X, y, _ = items
    with pytest.raises(ValueError, match="does not know: \\[7\\]"):
        fitted(X, np.where(y == 2, 7, y))
    with pytest.raises(CapacityError, match=r"rare labels \[2\] do not occur"):
        fitted(X, np.where(y == 2, 1, y))
    with pytest.raises(ValueError, match="has 1 of 50 items"):
        MulticlassCapacityClassifier(GaussianNB(), capacities={1: Capacity.fraction(0.1)}).fit(
            X[:50], np.r_[1, np.zeros(49)]
        )
    with pytest.raises(ValueError, match="gave NaN or infinity at row 1"):
        fitted(X, y).predict([[0, 0, 1], [np.nan, 0, 1]])
    with pytest.raises(ValueError, match="calibrated with ids"):
        fitted(X, y, ids=np.arange(2_000), ties="hash").predict(X)
    with pytest.raises(ValueError, match="would go unused"):
        MulticlassCapacityClassifier(FrozenEstimator(Posteriors().fit(X)), **VALID).fit(
            X, y, sample_weight=y
        )


class InTheTypeOfItems(Posteriors):
    """Posteriors in the type that the items come in."""

    def predict_proba(self, X):
        """Return what the parent does, rounded."""
        return super().predict_proba(X).astype(X.dtype)


def test_posteriors_in_a_coarser_type_than_in_calibration_are_refused(items):
    """Rounding could lift a whole block of ties above the price."""
    X, y, _ = items
    model = MulticlassCapacityClassifier(
        FrozenEstimator(InTheTypeOfItems().fit(X, y)), capacities=TWO, guarantee="plug-in"
    ).fit(X, y)
    single = X.astype(np.float32)
    with pytest.raises(ValueError, match=r"gives float32 scores .* recalibrate"):
        model.predict(single)
    assert np.mean(model.recalibrate(single).predict(single) == 1) <= 0.02


def test_a_failed_fit_leaves_nothing_behind(items):
    """A failed fit stores nothing, in particular no labels."""
    X, y, _ = items
    model = MulticlassCapacityClassifier(LogisticRegression(), capacities={9: Capacity.count(5)})
    before = dict(vars(model))
    with pytest.raises(CapacityError):
        model.fit(X, y)
    assert vars(model) == before


def test_a_single_calibration_item_gives_a_threshold_and_no_prices():
    """It must be new to the prices; half of all items exceed it, which is the capacity."""
    sample = JointSample(np.array([[0.5]]), np.zeros(1, dtype=int), np.full(1, 0.3))
    half = JointCapacities({1: Capacity.fraction(0.5)}, {0: 1, 1: 1})
    rule = JointRule.calibrate(sample, half)
    assert not rule.prices.any()
    new = JointSample(np.array([[0.9], [0.1]]), np.zeros(2, dtype=int), np.full(2, 0.3))
    assert_array_equal(rule.decide(new)[0], [1, 0])
