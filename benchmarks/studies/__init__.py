"""The experiments of the papers, beside the published numbers and other programs.

    python -m benchmarks.studies surtree
    python -m benchmarks.studies surtree osst osdt streed soft growth optimality
    python -m benchmarks.studies growth --only rows features
    python -m benchmarks.studies surtree --quick --out build/studies
    python -m benchmarks.studies surtree --report

A study is a file of this package. It consists of cells: one method on one set, with one setting.
A finished cell is appended to ``benchmarks/records/studies/NAME.csv``, and a cell that is there
already is skipped, so a study can be stopped and started at will. Delete the file to start anew.
``NAME.json`` describes the machine and the versions. The page ``docs/studies/NAME.md`` and its
pictures are made of these two files alone; ``--report`` makes them again without computing.

Numbers of the papers are in ``published.csv``, with the table they come from. The texts at hand are
converted from HTML and have no page numbers.
"""
