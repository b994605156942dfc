"""The models that `fit` can choose from, each behind the same preparation of columns."""

from __future__ import annotations

from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._validation import check_option
from ._schema import TableSchema

__all__ = ["LEARNERS", "candidate_models", "prepare_columns"]

_MOST_CATEGORIES = 32
_FEWEST_ROWS_OF_A_CATEGORY = 5


def _learners(random_state: int) -> dict[str, Any]:
    """Return fresh models by name: the one place that knows which there are."""
    return {
        "logistic": LogisticRegression(max_iter=1000),
        "forest": RandomForestClassifier(300, min_samples_leaf=5, random_state=random_state),
        "boosting": HistGradientBoostingClassifier(
            learning_rate=0.05,
            max_iter=200,
            max_leaf_nodes=6,
            early_stopping=False,
            random_state=random_state,
        ),
    }


#: What `--learner` takes: "auto" tries all the others.
LEARNERS = ("auto", *_learners(0))


def candidate_models(
    learner: str, schema: TableSchema, *, random_state: int = 0
) -> dict[str, Pipeline]:
    """Return the pipelines to choose from: all of them for "auto", or else the one named."""
    check_option("learner", learner, LEARNERS)
    models = _learners(random_state)
    names = list(models) if learner == "auto" else [learner]
    return {
        name: Pipeline([("columns", prepare_columns(schema)), ("learner", models[name])])
        for name in names
    }


def prepare_columns(schema: TableSchema) -> ColumnTransformer:
    """Fill gaps with medians, remember where they were, scale; and spread out categories.

    Everything is learned from the rows that the model is fitted on. Categories that are rare or
    were never seen share one column, so that a new one is no reason to stop.
    """
    numbers = [f.name for f in schema.features if f.kind != "categorical"]
    categories = [f.name for f in schema.features if f.kind == "categorical"]
    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    spread = OneHotEncoder(
        min_frequency=_FEWEST_ROWS_OF_A_CATEGORY,
        max_categories=_MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(fill, StandardScaler()), numbers),
            ("categories", spread, categories),
        ],
        verbose_feature_names_out=False,
    )
