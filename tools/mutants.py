"""Break each promise in the code, one line at a time, and see whether a test notices.

    python tools/mutants.py            # all of them, a table at the end
    python tools/mutants.py sync       # those whose name or file contains "sync"

Every mutant is one replacement in a temporary copy of the package; the tests named beside it run
against that copy. A mutant that no test fails for has survived, which is an error, and so is one
whose text is no longer found exactly once: write it anew for the code as it is now.
"""

# ruff: noqa: E501 - a table with one mutant per line
from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
EXACT = ("tests/properties/test_exact_promises.py",)
ENTITY_ROWS = ("tests/tables/test_entity_rows.py", "-k", "earlier or end or without or commands")
WEIGHTED = ("tests/tables/test_weighted_fit.py",)
DATABASES = ("tests/tables/test_databases.py", "-k", "killed or password or changed or together")
IDS = ("tests/properties/test_id_laws.py",)
GROUPS = ("tests/thresholds/test_groups.py",)
GROUPED_FIT = (
    "tests/classifier/test_grouped_fit.py",
    "-k",
    "are_held or splitter or strat or trained",
)
FOLDS = ("tests/thresholds/test_folds.py",)
WEBHOOK = ("tests/service/test_webhook.py", "-k", "not postgresql")
ANYTIME = ("tests/thresholds/test_anytime.py",)
TIERS = ("tests/thresholds/test_tiers.py",)
PRECISE_LISTS = ("tests/thresholds/test_list_precision.py",)
WITHOUT_OWN = ("tests/thresholds/test_without_own.py",)
RANDOM_PARTS = ("tests/classifier/test_random_parts.py",)
REPEATED = ("tests/classifier/test_repeated_rows.py",)
EVERY_ROW = ("tests/classifier/test_every_row_works.py", "-k", "single or recent")
LISTS = ("tests/classifier/test_list_estimator.py", "-k", "one_model")
ATOMIC = ("tests/atomic/test_atomic.py",)
PACKED = ("tests/service/test_gates.py", "-k", "all_kinds")
TURNOUT = ("tests/thresholds/test_turnout.py",)
INVITED = ("tests/tables/test_turnout_lists.py",)
DURABLE = ("tests/stream/test_stream_file.py",)
KAFKA = ("tests/stream/test_kafka.py", "-k", "not kills")
LOGS = ("tests/service/test_logs.py",)
SWAP = ("tests/service/test_swap.py",)
CLOCK = ("tests/service/test_clock.py",)
SHADOW = ("tests/service/test_shadow.py", "-k", "sqlite or missing or complete or verdict")
WAITING = ("tests/service/test_waiting_cases.py", "-k", "sqlite")
LOG = ("tests/service/test_log.py", "-k", "not postgresql")
PEOPLE = ("tests/service/test_people.py", "-k", "not postgresql")
DRIFT = ("tests/service/test_drift_alarm.py", "-k", "first or restart or anew")
SHIFTS = ("tests/statistical/test_report_drift.py", "-k", "seldom")
WORK = ("tests/online/test_budget_work.py",)
PULL = ("tests/online/test_pull.py",)
WAITING_ENTITIES = ("tests/service/test_waiting_entities.py", "-k", "sqlite")
RANKS = ("tests/engines/test_ranks.py",)
ENTITIES = ("tests/online/test_entity_cases.py",)
ENTITY_QUEUES = ("tests/service/test_entities.py",)
ALARM = ("tests/online/test_alarm.py",)
EFFORTS = ("tests/thresholds/test_efforts.py",)
EFFORT_LAWS = ("tests/properties/test_effort_laws.py",)
PROBES = ("tests/online/test_online_probes.py",)
NEEDED = ("tests/metrics/test_needed.py",)
BY_GROUP = ("tests/tables/test_evaluate_groups.py",)
MISSED_VALUE = ("tests/feedback/test_missed_value.py",)
MISSED = ("tests/feedback/test_missed.py",)
_PATIENCE = 600  # seconds
_NEEDED = (
    "pytest",
    "hypothesis",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "scipy.stats",
    "skops.io",
)
_NEEDED += ("narwhals.stable.v2", "sklearn.linear_model", "sklearn.ensemble", "sklearn.pipeline")


class Mutant(NamedTuple):
    """A name, a file of the package, what stands in it and what takes its place, and tests."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = EXACT


MUTANTS = [
    # Rounding
    Mutant("capacity rounded up", "capacity.py", "math.floor(self.as_ratio", "math.ceil(self.as_ratio"),
    Mutant("capacity in binary", "capacity.py", "else Fraction(str(number))", "else Fraction(number)"),
    Mutant("count above the batch", "capacity.py", "return min(int(self.value), n)", "return int(self.value)"),
    Mutant("plug-in rounded up", "thresholds/guarantees.py", "return math.floor(c * n) if", "return math.ceil(c * n + 1) if"),
    Mutant("plug-in at zero", "thresholds/guarantees.py", "if c > 0 else -1", "if c > 0 else 0"),
    Mutant("expected one more", "thresholds/guarantees.py", "k = math.floor((n + 1) * c) - 1", "k = math.floor((n + 1) * c)"),
    Mutant("expected without + 1", "thresholds/guarantees.py", "k = math.floor((n + 1) * c) - 1", "k = math.floor(n * c)"),
    # Tails
    Mutant("confident one more", "thresholds/guarantees.py", "k = largest(lambda k: law(Place(k)) <= most, n)", "k = min(largest(lambda k: law(Place(k)) <= most, n) + 1, n)"),
    Mutant("confident at twice the error", "thresholds/guarantees.py", "lambda place: exceedance(place, n, c), error)", "lambda place: exceedance(place, n, c), 2 * error)"),
    Mutant("upper bound two-sided", "_core/intervals.py", "betaincinv(x + 1, np.maximum(n - x, 1), 1 - error)", "betaincinv(x + 1, np.maximum(n - x, 1), 1 - 2 * error)"),
    Mutant("lower bound too high", "_core/intervals.py", "betaincinv(np.maximum(x, 1), n - x + 1, error)", "betaincinv(np.maximum(x, 1), n - x + 1, 2 * error)"),
    Mutant("interval at twice the error", "_core/intervals.py", "clopper_pearson_upper(successes, trials, error=error / 2)", "clopper_pearson_upper(successes, trials, error=error)"),
    # Ties
    Mutant("nights forgotten", "thresholds/guarantees.py", "return bool((n + 1) * float(c) * chance <= error * beyond)", "return bool(chance <= error * beyond)", ANYTIME),
    Mutant("a walk at twice the error", "thresholds/guarantees.py", "chance <= error * beyond)", "chance <= 2 * error * beyond)", ANYTIME),
    Mutant("groups that grow", "thresholds/terms.py", "if self.kind.of_batches or self.kind.over_time:", "if self.kind.of_batches:", ANYTIME),
    Mutant("an estimated prevalence at any time", "thresholds/terms.py", "(self.estimates(capacity) or tests_precision)", "tests_precision", ANYTIME),
    Mutant("a sample that is drawn anew", "thresholds/promise.py", "kind.over_time and max(sizes) > _MOST_OVER_TIME", "False", ANYTIME),
    Mutant("refused after an hour of fitting", "classifier/_classifier.py", "            terms.check(limit, labelled=labelled, grouped=facts.groups is not None)", "            pass", ANYTIME),
    Mutant("batches at twice the error", "thresholds/guarantees.py", "max_flags, batch, n_batches), error", "max_flags, batch, n_batches), 2 * error"),
    Mutant("folds at twice the capacity", "thresholds/guarantees.py", "tail_mean(place, n, error=error), float(c))", "tail_mean(place, n, error=error), 2 * float(c))", FOLDS),
    Mutant("a band at twice the capacity", "thresholds/_bands.py", "_upper(place, n, error), float(c))", "_upper(place, n, error), 2 * float(c))", ("tests/thresholds/test_simultaneous.py",)),
    Mutant("the band of the place before", "thresholds/_bands.py", "(_bound(k, n, error) for k in (place.k, place.k + 1))", "(_bound(k - 1, n, error) for k in (place.k, place.k + 1))", ("tests/thresholds/test_simultaneous.py",)),
    Mutant("next batch one more", "thresholds/guarantees.py", "hypergeom.cdf(k, n + batch, n, k + 1 + max_flags)", "hypergeom.cdf(k, n + batch, n, k + 2 + max_flags)"),
    Mutant("a larger share on average", "thresholds/guarantees.py", "rest = (n + 1) * c - (k + 1)", "rest = (n + 1) * c - k - Fraction(1, 2)"),
    Mutant("the gap is forgotten", "thresholds/guarantees.py", "np.clip((c - share * gaps) / np.maximum(1 - share * gaps, 1e-300), 0, 1)", "np.clip((c - share * gaps), 0, 1)"),
    Mutant("a share at twice the error", "thresholds/guarantees.py", "return law(Place(k, share)) - most", "return law(Place(k, share)) - min(2 * most, 0.99)"),
    Mutant("the key is the lot", "_core/ids.py", "return _unit_interval(_mix(_mix((keys * 2.0**53).astype(np.uint64) ^ _LOTS)))", "return keys"),
    Mutant("single scores have no key", "thresholds/samples.py", "keys = tie_keys(rows) if are_hashed", "keys = tie_keys(rows) * np.isin(np.arange(scores.size), tied_positions(scores)) if are_hashed"),
    Mutant("everything between the places", "_core/ranking.py", "lots_of(tie_keys(np.flatnonzero(between))) < self.share", "True", ("tests/thresholds/test_too_few.py",)),
    Mutant("all work is kept", "thresholds/samples.py", "return replace(self, scores=np.where(kept, self.scores, lowest))", "return replace(self, scores=np.where(~kept, self.scores, lowest))", EFFORTS),
    Mutant("large groups over capacity", "thresholds/terms.py", "return min(share * n / int(above.sum()), Fraction(1))", "return Fraction(1)", GROUPS),
    Mutant("a level above the capacity", "thresholds/terms.py", "return min(share * n / int(above.sum()), Fraction(1))", "return share * n / int(above.sum())", GROUPS),
    Mutant("the looser of two cuts", "_core/ranking.py", "return min(first, second", "return max(first, second", GROUPS),
    Mutant("lots prefer some items of a group", "thresholds/samples.py", "order = np.lexsort((self.lots(seed), self.groups))", "order = np.lexsort((np.arange(self.scores.size), self.groups))", GROUPS),
    Mutant("prevalence from rows of groups", "_core/labels.py", "clopper_pearson_lower(*self.independent, error=error)", "clopper_pearson_lower(*(self.counts or (0, 1)), error=error)", GROUPS),
    Mutant("groups of folds forgotten", "thresholds/samples.py", 'own = {name: _of(column, rows) for name, column in (own | {"is_rare": is_rare}).items()}', 'own = {name: _of(column, rows) for name, column in (own | {"is_rare": is_rare}).items()} | {"groups": None}', GROUPED_FIT),
    Mutant("folds at a quantile", "thresholds/promise.py", "find = guarantee.fold_place if promise.in_folds else guarantee.place", "find = guarantee.place", FOLDS),
    Mutant("the row judges itself", "thresholds/terms.py", "- (mine <= items)", "- 0", WITHOUT_OWN),
    Mutant("one score too many", "thresholds/terms.py", "self._place(own, others.size - 1)", "self._place(own, others.size)", WITHOUT_OWN),
    Mutant("copies at the cut left out", "thresholds/terms.py", "above = places <= np.sort(places)", "above = places < np.sort(places)", GROUPS),
    Mutant("equal rows in any fold", "classifier/_classifier.py", "groups = groups._replace(hashed=keys_of(RowFacts(X), seed + 1)(first))", "pass", REPEATED),
    Mutant("equal rows judged by any model", "thresholds/rules.py", "by_row = self.samples[0].groups is not None", "by_row = False", REPEATED),
    Mutant("folds that follow the labels", "_core/folds.py", "np.arange(n) % min(int(cv), n)", "np.arange(n) % max(min(int(cv), int(np.bincount(codes).min())), 2)", RANDOM_PARTS),
    Mutant("a second division without a word", "_core/folds.py", "            if n_before > len(by_hash):", "            if False:", RANDOM_PARTS),
    Mutant("large groups over the plug-in", "thresholds/terms.py", "return place, Cuts(upper, lower, place.share).within(at_most)", "return place, Cuts(upper, lower, place.share)", GROUPS),
    Mutant("batches promised by folds", "thresholds/promise.py", "if len(sizes) > 1 and kind.fold_place is None:", "if False:", FOLDS),
    Mutant("half the error for all folds", "thresholds/rules.py", "error=tail / n_folds", "error=min(0.5, 40 * tail)", FOLDS),
    Mutant("ties at the cut are flagged", "_core/ranking.py", "flagged = scores > _rounded_up(cut.value, scores.dtype)", "flagged = scores >= _rounded_up(cut.value, scores.dtype)"),
    Mutant("the key of the cut is flagged", "_core/ranking.py", "tie_keys(tied) < cut.key", "tie_keys(tied) <= cut.key"),
    Mutant("the cut one place later", "_core/ranking.py", "keys[k - np.count_nonzero(scores > np.float64(value))]", "keys[min(k + 1 - np.count_nonzero(scores > np.float64(value)), keys.size - 1)]"),
    Mutant("single precision not rounded up", "_core/ranking.py", "below = float(rounded) < value", "below = False"),
    Mutant("scores lifted down", "_core/ranking.py", "bits += (1 << n_bits) - 1 - remainder", "bits -= remainder"),
    Mutant("one flag more of a batch", "_core/ranking.py", "missing = k - int(np.count_nonzero(flagged))", "missing = k + 1 - int(np.count_nonzero(flagged))"),
    # Hash keys
    Mutant("texts without the seed", "_core/ids.py", "digest_size=8, key=key)", "digest_size=8)", IDS),
    Mutant("all texts alike", "_core/ids.py", "hashlib.blake2b(text, ", "hashlib.blake2b(text[:0], "),
    Mutant("gaps among moments", "_core/ids.py", "np.where(np.isnat(values), _MISSING, counts)", "counts", IDS),
    Mutant("numbers without the seed", "_core/ids.py", "_mix(_mix(words ^ _mix(np.array([seed % 2**64], dtype=np.uint64))))", "_mix(_mix(words))", IDS),
    Mutant("moments in other units", "_core/ids.py", 'values.astype(f"{kind}8[us]").astype(np.int64)', "values.astype(np.int64)", IDS),
    Mutant("gaps make floats", "_core/ids.py", "return bool(series.null_count())", "return False", IDS),
    Mutant("masks ignored", "_core/ids.py", "return np.array(container.tolist(), dtype=object)", "return np.asarray(container.data)", IDS),
    Mutant("columns and values alike", "_core/ids.py", "return _mix(hashed ^ _PLACES)", "return hashed", ("tests/thresholds/test_hashing.py",)),
    Mutant("rounded ids accepted", "_core/ids.py", "if wrong.size:", "if False:", IDS),
    Mutant("ids in NumPy's types", "_core/ids.py", "return id.item()", "return id", IDS),
    # Corrections for several limits
    Mutant("segments do not share", "thresholds/rules.py", "(1 - self.terms.confidence) / max(n_limits, 1)", "(1 - self.terms.confidence)"),
    Mutant("the total is forgotten", "thresholds/rules.py", "limits = [self.capacity, *self.segments.limits]", "limits = [*self.segments.limits]"),
    Mutant("enough for the sample is enough", "metrics/_curve.py", "high=float(self.fraction[min(unsure[-1] + 1, self.fraction.size - 1)])", "high=float(self.fraction[found[0]])", NEEDED),
    Mutant("the last capacity that is not enough", "metrics/_curve.py", "high=float(self.fraction[min(unsure[-1] + 1, self.fraction.size - 1)])", "high=float(self.fraction[unsure[-1]])", NEEDED),
    Mutant("a detection that is only likely", "metrics/_curve.py", "self.thresholds[self.at_threshold_low >= detection]", "self.thresholds[self.detection >= detection]", NEEDED),
    Mutant("a lower end too high", "metrics/_curve.py", "low=float(self.fraction[max(can - 1, 0)])", "low=float(self.fraction[min(can + 1, found[0])])", NEEDED),
    Mutant("a part of the loss without a probe", "_core/probing.py", "counts = [min(part.size, n_probes // n_parts) for part in parts]", "counts = [0 for part in parts]", MISSED_VALUE),
    Mutant("probes by loss said to be alike", "_core/probing.py", "result.probabilities[part] = n_drawn / part.size", "result.probabilities[part] = n_probes / below.size", MISSED_VALUE),
    Mutant("a probe more than there are slots", "_core/probing.py", "min(parts[place].size - counts[place], n_probes - sum(counts))", "min(parts[place].size - counts[place], n_probes + 1 - sum(counts))", MISSED_VALUE),
    Mutant("without a probability nothing is at stake", "feedback/_reviews.py", "if np.isnan(chances[below]).any():", "if False:", MISSED_VALUE),
    Mutant("cases without a probe are common", "feedback/_missed.py", "high += reviews.count(reviews.never_drawn & among)", "pass", MISSED_VALUE),
    Mutant("large weights are left to the draw", "feedback/_reviews.py", "below & (weights > unit)", "below & (weights > math.inf)", MISSED_VALUE),
    Mutant("groups do not share the error", "tables/groups.py", "0.05 / len(names)", "0.05", BY_GROUP),
    Mutant("a floor one short", "tables/groups.py", "math.ceil(exact(detection)", "math.floor(exact(detection)", BY_GROUP),
    Mutant("a floor beyond the capacity", "tables/groups.py", "is_enough = least <= allowed", "is_enough = True", BY_GROUP),
    Mutant("classes do not share", "multiclass/_rule.py", "shared = error / max(_n_limits(capacities.given), 1)", "shared = error / 2"),
    Mutant("segments and the total count twice", "multiclass/_rule.py", "1 - shared * max(n_limits, 1)", "1 - min(2 * shared * max(n_limits, 1), 0.5)"),
    Mutant("prices and thresholds from the same items", "multiclass/_rule.py", "        if not kind.of_sample:\n            first, unseen", "        if False:\n            first, unseen"),
    Mutant("prevalences cost nothing", "thresholds/terms.py", "error /= 2  # the other half", "error /= 1  # the other half"),
    Mutant("answers outside a transaction", "tables/_databases.py", 'cursor.execute("BEGIN")', "pass", DATABASES),
    Mutant("answers never committed", "tables/_databases.py", 'cursor.execute("COMMIT")', "pass", DATABASES),
    Mutant("databases open for changes", "tables/_databases.py", "mode={'rwc' if writes else 'ro'}", "mode=rwc", DATABASES),
    Mutant("a password in an error", "tables/_databases.py", "address.without_password(str(error))", "(str(error) + address.url)", DATABASES),
    Mutant("a password in an address", "_core/files.py", "for shown in (secret, unquote(secret or \"\")):", "for shown in ():", DATABASES),
    Mutant("half a password as a query", "_core/files.py", '("@" not in table or _BEGINS.match(table))', '("@" not in table or self.is_query)', DATABASES),
    Mutant("Holm without a correction", "tables/drift.py", "np.minimum(1, factors * np.take(p_values, order))", "np.take(p_values, order)"),
    Mutant("Holm not monotone", "tables/drift.py", "np.maximum.accumulate(np.minimum(1, factors * np.take(p_values, order)))", "np.minimum(1, factors * np.take(p_values, order))"),
    Mutant("lists compared with folds", "service/_replica.py", "DriftAlarm(calibration) if is_own else None", "DriftAlarm(calibration)", DRIFT),
    Mutant("first scores gathered twice", "service/_replica.py", "            self.first = ()\n            self._gather", "            self._gather", DRIFT),
    Mutant("bins chosen by the rows they count", "tables/learned_rows.py", "_categories(values[chooses]), values[~chooses]", "_categories(values), values", SHIFTS),
    # An unknown prevalence, and weights
    Mutant("tested at twice the error", "thresholds/guarantees.py", "float(b / (1 + b))) <= error", "float(b / (1 + b))) <= 2 * error"),
    Mutant("hits turned to the wrong side", "thresholds/guarantees.py", "    if b > 1:", "    if b < 1:"),
    Mutant("lots by a hash of the row", "thresholds/samples.py", "if self.keys_of is None or not self.keyed_by_ids:", "if self.keys_of is None:", GROUPS),
    Mutant("lots drawn twice", "thresholds/terms.py", "lots = lots_of(own.lots(self.terms.seed))[order]", "lots = own.lots(self.terms.seed)[order]", GROUPS),
    Mutant("odds of one for every multiple", "thresholds/guarantees.py", "float(b / (1 + b))", "0.5"),
    # Groups
    Mutant("splitters may divide groups", "_core/folds.py", "if np.intersect1d(groups[train], groups[unseen]).size:", "if False:", GROUPED_FIT),
    Mutant("rows are left out, not groups", "_core/folds.py", "folds = drawn if groups is None else drawn[groups]", "folds = rng.permutation(np.arange(strata.size) % 5)", RANDOM_PARTS),
    Mutant("folds are dealt in order", "_core/folds.py", "(rng.permutation(dealt) for", "(dealt for", RANDOM_PARTS),
    Mutant("copies are cases of their own", "classifier/_classifier.py", "groups = folds.Groups(None, repeats.groups)", "groups = folds.Groups(None, None)", REPEATED),
    Mutant("each copy is evidence", "classifier/_classifier.py", "facts = replace(facts, groups=repeats.groups)", "pass", REPEATED),
    Mutant("copies whatever their label", "_core/ids.py", "np.unique(counts.size * alike + codes, return_inverse=True)", "np.unique(counts.size * alike, return_inverse=True)", REPEATED),
    Mutant("alike by chance, and grouped", "_core/ids.py", "None if by_chance or too_few or", "None if too_few or", REPEATED),
    Mutant("nothing to learn from is no reason to draw again", "_core/folds.py", "if is_whole and all(_can_learn(codes, drawn[units] != fold) for fold in left_out):", "if True:", RANDOM_PARTS),
    # Folds
    Mutant("worst cases without the tail", "thresholds/guarantees.py", "stats.beta.sf(worst, a + 1, b) / error * a", "stats.beta.sf(worst, a, b) / error * a", FOLDS),
    Mutant("ties near the cut not lifted", "thresholds/rules.py", "flag_with_keys(lift(scores), ", "flag_with_keys(scores, ", FOLDS),
    Mutant("one model for all folds", "classifier/_classifier.py", "self._score(scoring.take_rows(X, own), fold) for own, fold in pairs", "self._score(scoring.take_rows(X, own), 0) for own, fold in pairs", EVERY_ROW),
    Mutant("lists rank by a model, whose threshold is that of another", "classifier/_classifier.py", "if len(splits) == 1:", "if len(splits) == 0:", LISTS),
    Mutant("arrays forget the names", "_core/ids.py", "named = names is not None and len(names) == n_columns", "named = False", ("tests/thresholds/test_hashing.py",)),
    Mutant("stored twice, hashed twice", "_core/ids.py", "by_rows.sum_duplicates()  #", "pass  #", ("tests/thresholds/test_hashing.py",)),
    Mutant("a row's fold depends on the batch", "thresholds/rules.py", "self.fold_keys(facts)(np.arange(n_rows(facts.X)))", "np.linspace(0, 0.99, n_rows(facts.X))", EVERY_ROW),
    # Write, sync, answer
    Mutant("a switch waits for nobody", "service/_models.py", "return sum(model not in json.loads(loaded) for (loaded,) in rows)", "return 0", (*SWAP, "-k", "two_swaps and sqlite")),
    Mutant("a model is loaded under the lock", "service/_decider.py", "self._was_quick and model in self._models.loaded", "self._was_quick", (*SWAP, "-k", "queue_is_locked and sqlite")),
    Mutant("a model is read in a worker only", "service/_models.py", "        check_apart(content)\n", "", ("tests/service/test_gates.py", "-k", "ends_its_reader and sqlite")),
    Mutant("a model of any unit", "service/_models.py", "if len(units) > 1 or (", "if (", (*SWAP, "-k", "not_fit and False")),
    Mutant("a model of any columns", "service/_models.py", "if error is not None and (flagged or", "if False and (flagged or", (*SWAP, "-k", "not_fit and False")),
    Mutant("the id follows the model", "service/setup.py", "        id_fields=model.id_fields,\n", "", (*SWAP, "-k", "id_column and sqlite")),
    Mutant("a disk that is nearly full is ready", "service/_decider.py", "maker.saves = self._failing", "maker.saves = False", ("tests/service/test_gates.py", "-k", "full_disk and sqlite")),
    Mutant("who asks is ahead of the log", "service/_decider.py", "            if not maker.entries:  # slots that were due", "            if False:  # slots that were due", (*WAITING, "-k", "not_ahead and sqlite")),
    Mutant("a state that is ahead of the log is saved", "service/_group.py", "snapshot if self._at == self.row.high_water else None", "snapshot", (*WAITING, "-k", "not_ahead and sqlite")),
    Mutant("a worker that starts takes any id", "service/_service.py", "                decider.id_fields = QueueSettings.from_json(row.settings).id_fields\n", "", (*SWAP, "-k", "just_started and sqlite")),
    Mutant("a page of cases is found in order", "service/_staff.py", "({', '.join(map(str, page))})\")", "({', '.join(map(str, page))}) ORDER BY {order}\")", ("tests/service/test_steps.py", "-k", "fits_no")),
    Mutant("a shadow decides", "service/_decider.py", "            case.shadow = None if item is None or item.error is not None else item.score\n", "            case.shadow = None\n            case.score = case.score if item is None or item.error is not None else item.score\n", SHADOW),
    Mutant("a shadow must have a score", "service/_decider.py", "        for case, item in zip_longest(cases, items):\n", "        for case, item in zip_longest(cases, items):\n            if item is not None and item.error is not None:\n                case.answer = item.error\n", SHADOW),
    Mutant("a shadow is promoted on outcomes that are missing", "service/_shadow.py", "float(n_rare + n_unknown + min(high, unseen))", "float(n_rare + min(high, unseen))", SHADOW),
    Mutant("later outcomes count at an earlier look", "service/_status.py", "AND outcome.at < ? ORDER BY", "AND ? > 0 ORDER BY", SHADOW),
    Mutant("looks at a shadow are not counted", "service/_shadow.py", "return rows, max(view.number - period - 1, 0)", "return rows, 1", SHADOW),
    Mutant("nothing is refused early", "service/_service.py", '        if action == "decide":\n', "        if False:\n", ("tests/service/test_api.py", "-k", "too_many")),
    Mutant("a period that was left begins anew", "service/_group.py", "self._ended.get(number, rows[0])", "(0, 0, 0, 0)", CLOCK),
    Mutant("a clock before the last decision is silent", "service/_status.py", "if ahead > FAR_AHEAD:", "if False:", CLOCK),
    Mutant("asking in vain moves the controller", "service/_decider.py", "            replica.controller = Controller.from_state(before)\n", "            pass\n", WAITING),
    Mutant("a case that was asked for takes no slot", "service/_group.py", "slot = None if is_erased(entry.seal) else self._slot(allowed, None)", "slot = None", WAITING),
    Mutant("erased cases are handed out", "service/_group.py", "slot = None if is_erased(entry.seal) else self._slot(allowed, None)", "slot = self._slot(allowed, None)", WAITING),
    Mutant("hand-outs are not compared", "service/_replica.py", "if case is None or case.id != entry.joined:", "if False:", WAITING),
    Mutant("a case waits for good", "service/audit.py", "is_there = entry.at <= self._end_of(entry.joined)", "is_there = True", WAITING),
    Mutant("a grown case keeps its place", "service/_replica.py", "self.controller.lift(entry.joined or 0, entry.score or 0.0)", "pass", WAITING_ENTITIES),
    Mutant("a slot has the score of the first event", "service/_group.py", "score = self._highest(entry.seq, entry.score or 0.0)", "score = entry.score or 0.0", WAITING_ENTITIES),
    Mutant("an expired case is joined", "service/_group.py", "elif self._replica.controller.waits(key):", "else:", WAITING_ENTITIES),
    Mutant("a handed-out case is forgotten", "service/_group.py", "self._cases.begin(entry.entity, entry.seq, score, self._at)", "self._cases.end(entry.entity)", WAITING_ENTITIES),
    Mutant("an audit takes any score for the highest", "service/audit.py", " and score >= case.highest", "", WAITING_ENTITIES),
    Mutant("slots of better cases are given away", "online/_pull.py", "self._take(self._waiting[number].score, n_ahead, moment)", "self._take(self._waiting[number].score, 0, moment)", PULL),
    Mutant("waiting cases keep the scores of another model", "online/_pull.py", "self._wait(case._replace(score=score))", "self._wait(case)", PULL),
    Mutant("an entry is not chained", "service/_chain.py", "return _hash([before, *kept, ", "return _hash([*kept, ", LOG),
    Mutant("a seal without its salt", "service/_chain.py", '_hash([row["seal"], *(row[name]', "_hash([*(row[name]", LOG),
    Mutant("links are not compared", "service/_chain.py", "place == self.last + 1 and head == hash", "place == self.last + 1", LOG),
    Mutant("heads are not compared", "service/_chain.py", "all(place != each or hash.hex() == kept", "all(True or hash.hex() == kept", LOG),
    Mutant("a cut tail passes", "service/_chain.py", "self._expect(most <= self.last,", "self._expect(True,", LOG),
    Mutant("rows are not vouched for", "service/audit.py", "for key in dict(there.items() ^ store.hashes(table).items()):", "for key in ():", LOG),
    Mutant("counts are not compared", "service/audit.py", "row._replace(head=bytes(row.head)) == counted", "True", LOG),
    Mutant("past periods are not compared", "service/audit.py", "if p != self._period} == past", "if p != self._period} == past or True", LOG),
    Mutant("what was erased may be written again", "service/_chain.py", 'return _hash(list(row.values())) if is_erased(row.get("seal")) else link(b"", row)', 'return link(b"", row)', LOG),
    Mutant("announced capacities reopen a restored period", "service/setup.py", "*(begins for begins in changes.after(now) if begins < end)", "", LOG),
    Mutant("webhook: a later event of a case goes first", "service/webhook.py", "earlier.number < event.number", "earlier.number < 0", WEBHOOK),
    Mutant("webhook: what was refused is forgotten", "service/webhook.py", "if error is None:", "if True:", WEBHOOK),
    Mutant("webhook: the content is not signed", "service/webhook.py", """f"{id}.{timestamp}.".encode() + content""", """f"{id}.{timestamp}.".encode()""", WEBHOOK),
    Mutant("webhook: erased cases are sent", "service/webhook.py", "None if is_erased(seal) else content", "content", WEBHOOK),
    Mutant("webhook: redirects are followed", "service/webhook.py", "build_opener(_NoRedirect)", "build_opener()", WEBHOOK),
    Mutant("webhook: a restart begins anew", "service/webhook.py", "if places else []", "if len(places) > 99 else []", WEBHOOK),
    Mutant("webhook: two leaders write twice", "service/webhook.py", "if dict(store.query(_PLACES)) != places:", "if False:", WEBHOOK),
    Mutant("webhook: every alarm is new", "service/store.py", "if not self.query(known, queue, kind):", "if True:", WEBHOOK),
    Mutant("anything may be erased", "service/store.py", """where.append("length(seal) = 32" if table == "log" else "TRUE")""", """where.append("FALSE" if table == "log" else "TRUE")""", LOG),
    Mutant("any signature will do", "service/audit.py", "is_signed = key is None or hmac", "is_signed = True or hmac", LOG),
    Mutant("a key never ends", "service/keys.py", "return key if time.time() < key.ends else None", "return key", LOG),
    Mutant("a restored period goes on", "service/setup.py", "            if restored:\n", "            if False:\n", LOG),
    Mutant("another's case is closed", "service/_reviews.py", "if is_anothers and (", "if False and (", PEOPLE),
    Mutant("any name is believed", "service/_service.py", "if person is None or given not in (None, person):", "if person is None:", PEOPLE),
    Mutant("any secret vouches", "service/keys.py", 'if not hmac.compare_digest(headers.get(b"x-proxy-secret", b""), secret):', "if False:", PEOPLE),
    Mutant("minutes that are taken are free", "service/_staff.py", "room[holder] = max(room[holder] - taken, 0)", "room[holder] -= 0", PEOPLE),
    Mutant("nobody needs a skill", "service/_staff.py", "is_able = segments is None or", "is_able = True or", PEOPLE),
    Mutant("what was declined comes back", "service/_staff.py", "is_able and has_time and (case.entry.seq, person.name) not in self.declined", "is_able and has_time", PEOPLE),
    Mutant("what changed meanwhile is assigned", "service/_staff.py", "if Staff.read(store, row, at) == staff and n_free == len(chosen):", "if True:", PEOPLE),
    Mutant("minutes count in every queue", "service/_staff.py", "exact(each.minutes) * n_shifts / sum(map(each.reviews, staffed))", "exact(each.minutes) * n_shifts", PEOPLE),
    Mutant("a week has the minutes of a day", "service/_staff.py", "n_shifts = max(shifts.number(ends) - shifts.number(begins), 1)", "n_shifts = 1", PEOPLE),
    Mutant("what was done yesterday takes minutes of today", "service/_staff.py", "if holder in room and (closed is None or closed >= since[holder]):", "if holder in room:", PEOPLE),
    Mutant("the first reviewer gets everything", "service/_staff.py", "is_due = is_back or store.query(first, begins)", "is_due = True", PEOPLE),
    Mutant("an exported column is overwritten", "service/reviewed.py", "free_name(name, own): _text(value)", "name: _text(value)", ("tests/service/test_reviewed.py",)),
    Mutant("absent people count", "service/_staff.py", "return self.reviews(queue) and (self.absent_until or 0.0) <= at", "return self.reviews(queue)", PEOPLE),
    Mutant("a part of a flag is one", "service/_staff.py", "units = int(total /", "units = math.ceil(total /", PEOPLE),
    Mutant("reviewers see probes", "service/_reviews.py", "UNSET if view.is_blind else case.entry.code == PROBE", "case.entry.code == PROBE", PEOPLE),
    Mutant("a probe's own score gets it a reviewer", "service/_staff.py", "is_other = [entry.code != PROBE for entry in entries]", "is_other = [True for entry in entries]", PEOPLE),
    Mutant("a reviewer sees where an outcome counts", "service/_status.py", "[] if self.is_blind else self._reviewed()", "self._reviewed()", PEOPLE),
    Mutant("any request id is logged", "service/logs.py", "given.decode() if _IS_ID(given) else", "given.decode('latin-1') if given else", LOGS),
    Mutant("an error is logged with its text", "service/logs.py", "return f\"{type(error).__name__} at {where}\"", "return f\"{error!r} at {where}\"", LOGS),
    Mutant("the log has paths", "service/app.py", "about[\"route\"] = f\"{route.method} {route.path}\"", "about[\"route\"] = f\"{route.method} {scope['path']}\"", LOGS),
    Mutant("the log names whom a proxy vouches for", "service/app.py", "key.id.partition(\" \")[0]", "key.id", LOGS),
    Mutant("the log has names of queues that do not exist", "service/app.py", "if queue in service.deciders else {}", "if queue else {}", LOGS),
    Mutant("a worker that nobody asks sleeps", "service/_decider.py", "                replica.follow(self._store.follow(self.queue, replica.seq))\n                if self._store.clock()", "                if self._store.clock()", ("tests/service/test_decider.py", "-k", "nobody_asks and sqlite")),
    Mutant("a state is saved between two slots", "service/_group.py", "group._replace(row=self.row, snapshot=None)", "group._replace(row=self.row)", (*WAITING, "-k", "joins_between and sqlite")),
    Mutant("the saved state is not audited", "service/audit.py", "replica.seq != seq or not replica.is_own or replica.state() == state", "True", (*LOG, "-k", "saved and sqlite")),
    Mutant("an audit without locks", "service/audit.py", "not store.missing_locks()", "True", (*LOG, "-k", "its_locks and sqlite")),
    Mutant("the last look-up is taken for this one", "service/store.py", "if asked.issuperset(cases):", "if True:", ("tests/service/test_decider.py", "tests/service/test_steps.py")),
    Mutant("small groups wait for nobody", "service/_decider.py", "self._usual / 2 and", "0 and", ("tests/service/test_decider.py", "-k", "small_group and sqlite")),
    Mutant("who is there undoes what was set", "service/_decider.py", "return request.after is not None and bool(", "return False and bool(", PEOPLE),
    Mutant("no sync of a decision", "service/_sqlite.py", "{'FULL' if self._sync else 'OFF'}", "OFF", DURABLE),
    Mutant("no sync of the folder", "service/stream_file.py", "    sync_folder(path.parent)\n", "", DURABLE),
    Mutant("answer without a record", "service/_group.py", "        maker.commit()\n", "        store.rollback()\n", DURABLE),
    Mutant("goes on after a failed write", "service/stream_file.py", "self.failed = True  # until everything is on disk", "self.failed = False", DURABLE),
    Mutant("the log of a deleted file is read", "service/stream_file.py", ', Path(f"{path}-wal")):', "):", DURABLE),
    Mutant("hard links accepted", "service/stream_file.py", "if found.st_nlink != 1:", "if found.st_nlink < 1:", DURABLE),
    Mutant("the file is not locked", "service/stream_file.py", "            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", "            pass\n", DURABLE),
    Mutant("two files of one name are one", "tables/read.py", 'f"{number:06}-{', 'f"{0:06}-{', ("tests/tables/test_remote.py",)),
    Mutant("a message counts as answered before it is", "service/kafka.py", "                yield [self._line(each) for each in messages]\n                self.position |= {self._name(m.partition()): m.offset() + 1 for m in messages}\n", "                self.position |= {self._name(m.partition()): m.offset() + 1 for m in messages}\n                yield [self._line(each) for each in messages]\n", KAFKA),
    Mutant("a message without an id is new each time", "service/stream.py", "given = getattr(line, \"place\", None) if given is None else given", "pass", KAFKA),
    Mutant("answers that were not taken are forgotten", "service/kafka.py", "if self._producer.flush(_SECONDS) or self._failed:", "if self._producer.flush(_SECONDS) < 0:", KAFKA),
    Mutant("a position without its decisions", "service/stream_file.py", "            with writing(self._replica) as maker:\n                for source, place in answered.items():", "            with self._store.write():\n                for source, place in answered.items():\n                    self._store.put(\"source\", {\"source\": source, \"answered\": place}, (\"source\",))\n            with writing(self._replica) as maker:\n                for source, place in {}.items():", KAFKA),
    Mutant("an empty file is new", "service/stream_file.py", "if not found.st_size:", "if False:", DURABLE),
    Mutant("replay not compared", "service/_replica.py", "if differs and (", "if False and (", DURABLE),
    Mutant("a late line opens its own period", "service/_group.py", "self._at = max(at, self._at)", "self._at = at", DURABLE),
    Mutant("no sync of a new state", "_core/files.py", "            os.fsync(file.fileno())", "            pass", ATOMIC),
    # Caps and clocks
    Mutant("flags of a budget not counted", "online/_pacing.py", "        ints[USED] += work", "        ints[USED] += 0"),
    Mutant("a case that is asked for takes no slot", "online/_pacing.py", "    ints[USED] += 1\n", "    ints[USED] += 0\n", PULL),
    Mutant("one slot more for waiting cases", "online/_pacing.py", "    if to_use <= 0:", "    if to_use < 0:", PULL),
    Mutant("a case is handed out again", "online/_pull.py", "case = self._flagged.pop(0)", "case = self._flagged[0]", PULL),
    Mutant("a decision lets patience end unnoticed", "online/controller.py", "        if not self._reach(moment):\n            return Decision(False, math.inf, REASONS[MOMENT_REFUSED], 0.0)\n        number", "        if self._time.is_refused(moment):\n            return Decision(False, math.inf, REASONS[MOMENT_REFUSED], 0.0)\n        number", PULL),
    Mutant("a case that waits is forgotten", "online/_pull.py", "        if known is None and id in self._here:", "        if known is None and id in ():", PULL),
    Mutant("patience never ends", "online/_pull.py", 'ends, closes = case.since + self.options["patience"]', "ends, closes = math.inf", PULL),
    Mutant("a restart forgets waiting cases", "online/_pull.py", "            self._wait(_read_case(case))", "            _read_case(case)", PULL),
    Mutant("a joined event is decided", "online/cases.py", "        return None if is_raised else JOINED", "        return None", ENTITIES),
    Mutant("a case is raised within its window", "online/cases.py", "is_raised = at >= case.at + self.window and ", "is_raised = ", ENTITIES),
    Mutant("a cool-down ends early", "online/cases.py", "at < case.at + self.window + self.cooldown else None", "at < case.at + self.window else None", ENTITIES),
    Mutant("a rise below the highest score", "online/cases.py", "highest=max(case.highest, score)", "highest=score", ENTITIES),
    Mutant("an allowance without an end", "online/cases.py", "if at < self._allowed.get(entity, -math.inf):", "if entity in self._allowed:", ENTITIES),
    Mutant("late events see an earlier clock", "online/cases.py", "now = max(to_seconds(at), controller.now)", "now = to_seconds(at)", ENTITIES),
    Mutant("an event that joins moves no clock", "online/controller.py", "            if not self._reach(moment):\n                return Decision(False, math.inf, REASONS[MOMENT_REFUSED], 0.0)\n            if id", "            if id", ENTITIES),
    Mutant("the log of an entity is not read", "service/_group.py", "        self._read_entities(sorted(", "        list(sorted(", ENTITY_QUEUES),
    Mutant("what the counts refuse begins a case", "service/_group.py", "        if slot is not None:\n            self._cases.begin(", "        if True:\n            self._cases.begin(", ENTITY_QUEUES),
    Mutant("an event joins no case in the log", "service/_group.py", "            return self._cases.join(each.entity, each.score, self._at)", "            return None", ENTITY_QUEUES),
    Mutant("an audit lets a case have two flags", "service/audit.py", "self._expect(is_due, f\"{where} is flagged, although", "self._expect(True, f\"{where} is flagged, although", ENTITY_QUEUES),
    Mutant("bucket takes no token", "online/_tracker.py", "ints[TOKENS] -= _PARTS", "ints[TOKENS] -= 0"),
    Mutant("bucket gives parts", "online/_tracker.py", "if ints[TOKENS] < _PARTS:", "if ints[TOKENS] < _PARTS // 2:"),
    Mutant("bucket overflows", "online/_tracker.py", "min(ints[TOKENS] + ints[REFILL], ints[MOST_TOKENS])", "ints[TOKENS] + ints[REFILL]"),
    Mutant("tokens rounded up", "online/_tracker.py", "int(ratio * _PARTS)", "int(ratio * _PARTS) + 1"),
    Mutant("tracker flags ties", "online/_tracker.py", "    flag = score > threshold", "    flag = score >= threshold"),
    Mutant("tracker forgets the rate", "online/_tracker.py", "floats[STEP] * (flag - rate)", "floats[STEP] * (flag - 2 * rate)"),
    Mutant("period begins early", "online/periods.py", "if origin + quotient * length > at:", "if origin + quotient * length > at + length:"),
    Mutant("period begins late", "online/periods.py", "if origin + (quotient + 1) * length <= at:", "if origin + (quotient + 1) * length < at:"),
    Mutant("time goes back", "online/periods.py", "        self.now = max(self.now, moment)", "        self.now = moment"),
    Mutant("the newest answer is forgotten", "online/controller.py", "            self._answers.popitem(last=False)", "            self._answers.popitem(last=True)"),
    Mutant("alarm bets unfairly", "online/_alarms.py", "factors[:, place] * total / np.dot(factors, odds)", "factors[:, place]", ALARM),
    Mutant("alarm too early", "online/_alarms.py", ">= -math.log(self._error)", ">= -math.log(self._error) / 2", ALARM),
    # Work
    Mutant("work of a flag not counted", "online/_pacing.py", "        ints[USED] += work", "        ints[USED] += 1", WORK),
    Mutant("a flag of any work fits", "online/_pacing.py", "if work > ints[TOTAL] - ints[KEPT] - ints[USED]:", "if 0 >= ints[TOTAL] - ints[KEPT] - ints[USED]:", WORK),
    Mutant("efforts rounded down", "_core/work.py", "math.ceil(Decimal(str(e))", "math.floor(Decimal(str(e))", EFFORT_LAWS),
    Mutant("very many efforts rounded down", "_core/work.py", "* (1 + 2**-50)", "* (1 - 2**-50)", EFFORT_LAWS),
    Mutant("products that are rounded count as whole", "_core/work.py", "& (scaled < _LARGEST_WHOLE)", "& (scaled < np.inf)", EFFORT_LAWS),
    Mutant("work may exceed its bound", "_core/work.py", "    if above.size:\n        raise", "    if False:\n        raise", EFFORTS),
    Mutant("a list takes one item too many", "_core/knapsack.py", 'n = int(np.searchsorted(used, room, side="right"))', 'n = int(np.searchsorted(used, room, side="right")) + 1', EFFORT_LAWS),
    Mutant("a p-value without its own item", "thresholds/precision.py", "(1 + n_before) * share.denominator", "n_before * share.denominator", PRECISE_LISTS),
    Mutant("ties count for a new item", "thresholds/precision.py", 'np.searchsorted(np.sort(common), places, side="right")', 'np.searchsorted(np.sort(common), places, side="left")', PRECISE_LISTS),
    Mutant("lists tested among themselves", "thresholds/lists.py", "self.tie_keys(rows), self.scores.size, precision)", "self.tie_keys(rows), rows.size, precision)", PRECISE_LISTS),
    Mutant("items that a fold has seen", "thresholds/rules.py", "if others or sample.is_rare is None or", "if sample.is_rare is None or", PRECISE_LISTS),
    Mutant("copies of common items", "thresholds/rules.py", "            sample = sample.one_of_each_group(self.terms.seed)", "            pass", PRECISE_LISTS),
    Mutant("keys of ids and of rows compared", "thresholds/rules.py", "own.sorting_keys if by_ids == sample.keyed_by_ids else", "own.sorting_keys if True else", PRECISE_LISTS),
    Mutant("what is acted on is reviewed as well", "thresholds/lists.py", "rows = np.flatnonzero(~acted)", "rows = np.arange(acted.size)", TIERS),
    Mutant("a capacity of what is left", "thresholds/lists.py", "        capacity = Capacity.count(capacity.max_flags(scores.size, prevalence))", "        capacity = Capacity.count(2 * capacity.max_flags(scores.size, prevalence))", TIERS),
    Mutant("a tier that calibration reaches", "thresholds/rules.py", 'replace(terms, guarantee="confident", n_batches=1, worth=worth)', 'replace(terms, guarantee="expected", n_batches=1, worth=worth)', TIERS),
    Mutant("one threshold to act on for all folds", "thresholds/rules.py", "acting_thresholds(self, act), fold_of)", "acting_thresholds(self, act)[:1], None)", TIERS),
    Mutant("one test for all rows of an id", "tables/_places.py", "keys, self.n_scored, precision)", "keys, len(self.cases), precision)", ("tests/tables/test_lists.py", "-k", "precis")),
    Mutant("precision tested where nothing can be divided", "_core/ranking.py", "is_end = _differs_from_last(scores[order], keys[order])[1:]", "is_end = np.ones(max(scores.size - 1, 0), dtype=bool)", ("tests/thresholds/test_precision.py",)),
    Mutant("precision tested at many places", "thresholds/precision.py", "share = promise.error / max(places.size, 1)", "share = promise.error", ("tests/thresholds/test_precision.py",)),
    # Probes, and what they say
    Mutant("probes beyond all flags", "online/_pacing.py", "and ints[USED] + drawn < ints[TOTAL]", "and True", PROBES),
    Mutant("probes take no flag", "online/_pacing.py", "        ints[DRAWN] += 1", "        ints[DRAWN] += 0", PROBES),
    Mutant("probes free no slot", "_core/probing.py", "result.flagged[listed[listed.size - n_probes :]] = False", "result.flagged[listed[:0]] = False", ("tests/feedback/test_probes.py",)),
    Mutant("a probability of one slot", "_core/probing.py", "result.probabilities[part] = n_drawn / part.size", "result.probabilities[part] = 1 / part.size", ("tests/feedback/test_probes.py",)),
    Mutant("missed at twice the error", "feedback/_reviews.py", "binom.cdf(hits, n, share) <= error / 2", "binom.cdf(hits, n, share) <= 2 * error", MISSED),
    Mutant("missed one less", "feedback/_reviews.py", "float(binom.sf(hits - 1, n, share))", "float(binom.sf(hits, n, share))", MISSED),
    Mutant("unknown outcomes are common", "feedback/_missed.py", "most = reviews.strata((reviews.is_rare | reviews.is_unknown) & among)[0]", "most = hits", MISSED),
    Mutant("bets that lose too little", "_core/intervals.py", "np.log1p(-np.outer(_ABOVE, numbers))", "np.log1p(-np.outer(0.5 * _ABOVE, numbers))", MISSED_VALUE),
    Mutant("bets that win too much", "_core/intervals.py", "np.log1p(np.outer(_BELOW, numbers))", "np.log1p(np.outer(2 * _BELOW, numbers))", MISSED_VALUE),
    Mutant("unknown outcomes are worth nothing", "feedback/_reviews.py", "total_upper(scaled[drawn & maybe]", "total_upper(scaled[drawn & rare]", MISSED_VALUE),
    Mutant("large values count for nothing", "feedback/_reviews.py", "min(high + float(values[large & maybe].sum()), most)", "min(high, most)", MISSED_VALUE),
    Mutant("values at hand are the largest", "feedback/_reviews.py", "    return float(max_value)\n", "    return largest\n", MISSED_VALUE),
    Mutant("looks cost nothing", "feedback/_missed.py", 'error /= check_count("look", look) * (look + 1)', 'check_count("look", look)', MISSED),
    # Model files
    Mutant("foreign types not refused", "models/files.py", "        if foreign and not trust:", "        if False:"),
    Mutant("every type is trusted", "models/files.py", "trusted, skops = known(), load_skops(whole=whole)", "skops = load_skops(whole=whole); trusted = skops.get_untrusted_types(data=payload)"),
    Mutant("a walk in trees may go back", "_core/trees.py", "(children > parents) &", "(children >= 0) &", PACKED),
    Mutant("a walk in trees may leave them", "_core/trees.py", "& (children < len(left))", "& (children > 0)", PACKED),
    Mutant("trees may ask for any column", "_core/trees.py", "& (columns < n_features)", "& (columns >= 0)", PACKED),
    Mutant("packed trees are not looked at", "models/files.py", "not isinstance(each, PackedForest) or each.is_sound", "True", PACKED),
    # Invitations
    Mutant("a rate from a history taken as known", "_core/turnout.py", "return float(clopper_pearson_upper(came, invited, error=float(error)))", "return came / invited", TURNOUT),
    Mutant("the whole error spent twice", "_core/turnout.py", "error /= 2", "error /= 1", TURNOUT),
    Mutant("the next day left out", "_core/turnout.py", "error * (values.size + n_new) - n_new", "error * values.size", TURNOUT),
    Mutant("one more than the slots", "_core/turnout.py", "np.cumsum(law[::-1])[::-1][slots + 1]", "np.append(np.cumsum(law[::-1])[::-1], 0)[slots + 2]", TURNOUT),
    Mutant("one case too many comes", "_core/turnout.py", "return n_before", "return n_before + 1", TURNOUT),
    Mutant("larger numbers forgotten", "_core/turnout.py", "law[-1] += moved[-1]", "pass", TURNOUT),
    Mutant("days over the slots for certain not counted", "_core/turnout.py", "return int(sure.sum()) + Fraction(", "return Fraction(", TURNOUT),
    Mutant("chances in the order of the table", "tables/_places.py", "self._invited(ranking.cases.chances if by_column", "self._invited(ranking.cases.chances[np.argsort(ranking.cases.numbers)] if by_column", INVITED),
    Mutant("weights forgotten", "tables/fit.py", '{"sample_weight": self.weights}', "{}", WEIGHTED),
    Mutant("reviewed rows set a threshold", "tables/fit.py", "    if unlabelled is None:\n        problem", "    if False:\n        problem", WEIGHTED),
    Mutant("a multiple of the reviewed share", "tables/fit.py", 'elif capacity.kind == "multiple":\n        problem', "elif False:\n        problem", WEIGHTED),
    Mutant("the first outcome instead of the latest", "service/reviewed.py", "{LATEST_OUTCOME}", "{LATEST_OUTCOME.replace('DESC', 'ASC')}", ("tests/service/test_reviewed.py",)),
    Mutant("events with places of their own", "tables/_places.py", "names = whole.number(cases.entities, cases.moments)", "names = np.arange(len(cases))", ENTITY_ROWS),
    Mutant("twice on a list within the cool-down", "tables/_places.py", "window=rule.window + rule.cooldown", "window=rule.window", ENTITY_ROWS),
    Mutant("earlier cases listed again", "tables/_places.py", "rule.settle(*event) is None for", "True for", ENTITY_ROWS),
    Mutant("a flag for every event", "tables/flag.py", "is_free = rule.settle(entity, score, self._now) is None", "is_free = True", ENTITY_ROWS),
    Mutant("an allow-list without an end", "tables/cases.py", "found &= cases.moments < np.array(ends)", "pass", ENTITY_ROWS),
    # Cuts of tables that no one holds together
    Mutant("a bracket too short", "distributed/_ranks.py", "place + 1 + behind", "place + behind - 1", RANKS),
    Mutant("what lies above the bracket not counted", "distributed/_ranks.py", "above=rest.size - inside.size", "above=0", RANKS),
    Mutant("the tied block listed whole", "distributed/_ranks.py", "cuts[name] = Cut(divided[name].value, -key.value)", "cuts[name] = Cut(divided[name].value, np.inf)", RANKS),
    Mutant("equal ids on both sides of a cut", "distributed/_ranks.py", "if divided[name].above + key.above < places[name]:", "if False:", RANKS),
]  # fmt: skip


def outcome(mutant: Mutant) -> str:
    """Return "killed", "survived", or what is wrong with the mutant or its tests."""
    text = (ROOT / "src" / "shortlist" / mutant.file).read_text()
    if text.count(mutant.old) != 1:
        return f"error: text found {text.count(mutant.old)} times"
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "shortlist"
        shutil.copytree(ROOT / "src" / "shortlist", copy, ignore=shutil.ignore_patterns("*.nb[ic]"))
        (copy / mutant.file).write_text(text.replace(mutant.old, mutant.new))
        code = run_tests(mutant.tests, Path(place))
    return {0: "survived", 1: "killed"}.get(code, f"error: pytest ended with {code}")


def run_tests(tests: tuple[str, ...], source: Path) -> int:
    """Run tests against a copy of the package, in a fork; the exit code of pytest."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(_PATIENCE)  # a mutant may run for ever
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            sys.path.insert(0, str(source))
            os.environ["PYTHONPATH"] = str(source)  # for tests that start processes
            os.chdir(ROOT)
            import pytest

            options = ["-x", "-q", "-p", "no:cacheprovider"]
            options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # imported before
            os._exit(int(pytest.main([*options, *tests])))
        finally:
            os._exit(9)
    _, status = os.waitpid(child, 0)
    return 1 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def warm_up() -> None:
    """Import what the tests need besides the package, which takes longer than most tests."""
    # Without compiling: a compiled copy would take longer to make than its tests take to run.
    os.environ |= {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1"}
    sys.dont_write_bytecode = True
    for name in _NEEDED:
        importlib.import_module(name)


def main() -> None:
    """Print a line for each mutant; exit with an error unless all were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of names or files; all mutants without any")
    options = parser.parse_args()
    warm_up()
    names = options.names or [""]
    chosen = [each for each in MUTANTS if any(n in each.name or n in each.file for n in names)]
    tests = sorted({each.tests for each in chosen})
    unbroken = [each for each in tests if run_tests(each, ROOT / "src")]
    if unbroken:
        sys.exit(f"These tests fail without any mutant: {unbroken}")
    start, outcomes = time.monotonic(), []
    sys.stdout.write("| mutant | file | outcome |\n|---|---|---|\n")
    for mutant in chosen:
        outcomes.append(outcome(mutant))
        sys.stdout.write(f"| {mutant.name} | {mutant.file} | {outcomes[-1]} |\n")
        sys.stdout.flush()
    killed = outcomes.count("killed")
    seconds = time.monotonic() - start
    sys.stdout.write(f"\n{killed} of {len(outcomes)} killed in {seconds:,.0f} seconds\n")
    sys.exit(killed != len(outcomes))


if __name__ == "__main__":
    main()
