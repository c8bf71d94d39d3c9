"""Do the trees predict new rows? Cross-validation, ours beside other models.

    python -m benchmarks.generalise A B --models default greedy "taught*" --against greedy
    python -m benchmarks.generalise A --train-rows 200 1000 --censor 0.5 --name sizes
    python -m benchmarks.generalise classification --jobs 2
    python -m benchmarks.generalise regression
    python -m benchmarks.generalise simulated --models default taught "Cox, ridge"

generalise.json holds the groups of sets and the models with their parameters. The survival defaults
were chosen on group A, compared on B meanwhile, and reported on C.

The folds are stratified and repeated with other seeds. A gap in a numeric column is filled with the
median of the training rows; categories are text. Survival sets whose rows are intervals of one
subject (time-dependent columns) are left out, since not every model accepts them.

The record is written after every cell (set, model). A run continues where the record of the same
name and date ended. Every cell is computed by one thread.
"""
