"""What all classifiers share before they decide: splits, folds, routing and segments."""
