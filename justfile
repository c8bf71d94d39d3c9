# One command each; `just` lists them.
default:
    @just --list

# Build the extension into the active virtual environment.
build:
    maturin develop --release

# The usual tests: of costly ones some cases only, and fewer random problems.
test: build
    BRISTLECONE_QUICK=1 cargo test --profile checks -p bristlecone-core -p bristlecone-oracle
    python -m pytest -m "not slow" -n auto

# All tests.
test-slow: build
    cargo test --profile checks -p bristlecone-core -p bristlecone-oracle
    python -m pytest -n auto

# Fresh examples and random problems; a failing one becomes a case of the ordinary tests.
explore *args: build
    python -m pytest tests --hypothesis-profile explore -m hypothesis {{ args }}
    BRISTLECONE_SEED=$(date +%s) BRISTLECONE_CASES=1000 python -m pytest tests/brute_force tests/fuzz {{ args }}

# A million random problems, resumable, and fuzzing: of a release (CONTRIBUTING.md).
campaign cases="1000000" jobs="2" seed="1000000" folder="campaign": build
    python tests/brute_force --cases {{ cases }} --jobs {{ jobs }} --seed {{ seed }} --folder {{ folder }}
    python tests/fuzz --cases 100000 --seed {{ seed }}

# Formatting, lints, types.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --release -- -D warnings
    ruff check .
    ruff format --check .
    mypy

# Format everything.
format:
    cargo fmt --all
    ruff check --fix .
    ruff format .

# Benchmarks against other libraries; see benchmarks/README.md.
bench *args: build
    python -m benchmarks.run {{ args }}

# The experiments of the papers, resumable: surtree osst osdt streed soft growth optimality.
study *args: build
    python -m benchmarks.studies {{ args }}

# README, guide and docstring examples.
docs: build
    python -m pytest tests/test_documentation.py

# The site, as in continuous integration: a warning is an error. Start at build/site/index.html.
site:
    python -m sphinx -q -W --keep-going docs build/site

# The pictures of the guide, where they have changed.
pictures: build
    python docs/pictures.py

# The kernels under AddressSanitizer; arguments are names of tests of crates/core/tests.
sanitize *args:
    .ci/sanitize {{ args }}

# What continuous integration runs.
ci:
    .ci/run
