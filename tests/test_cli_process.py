"""The command line as a process: Ctrl-C, pipes, and its start."""

import inspect
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Mapping

import pytest
from command_line import FIT, run, run_process, study_folder, table_of

import bristlecone
from bristlecone import _core
from bristlecone._cli import main
from bristlecone._cli.arguments import parse
from bristlecone._cli.kinds import KINDS
from bristlecone._cli.options import BY_NAME, MAPPING
from bristlecone._cli.progress import progress_line
from bristlecone._model.registry import load_model
from bristlecone._search.progress import SearchProgress


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return study_folder(tmp_path, monkeypatch)


@pytest.mark.slow
def test_everything_works_without_any_optional_library(folder):
    blocked = ("polars", "pyarrow", "matplotlib", "sksurv")
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from bristlecone._cli import main\n"
        "assert main([*sys.argv[1:], '--model', 'm.json', '--report', 'r.html']) == 0\n"
        "assert main(['predict', 'm.json', 'study.csv', '--out', 'p.csv']) == 0\n"
        "sys.exit(main(['fit', 'study.parquet', *sys.argv[3:]]))\n"
    )
    (folder / "study.parquet").write_bytes(b"")
    done = run_process("-c", program, "fit", "study.csv", *FIT)
    assert len((folder / "p.csv").read_text().splitlines()) == 7
    assert done.returncode == 2
    assert done.stderr == (
        "bristlecone: error: reading Parquet needs pyarrow: python -m pip install "
        "'bristlecone[parquet]'\n"
    )


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "bristlecone", "datasets"],
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    _, err = process.communicate(timeout=120)
    assert err == b""


@pytest.mark.slow
def test_ctrl_c_during_the_search_gives_the_best_tree_so_far(folder):
    program = (
        "import os, signal, sys, threading\n"
        "from bristlecone import _cli as cli, _core\n"
        "solve = _core.solve\n"
        "timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))\n"
        "def searching(*progress):\n"
        "    if timer.ident is None:\n"
        "        timer.start()\n"
        "def interrupted(*arguments, **options):\n"
        "    return solve(*arguments, **{**options, 'callback': searching})\n"
        "_core.solve = interrupted\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    # 2950 binary features at depth 4 would take hours without the interrupt.
    fit = ("fit", "maintenance", "--thresholds", "midpoints", "--max-depth", "4")
    done = run_process("-c", program, *fit, "--model", "m.json")
    assert done.returncode == 130
    assert table_of(done.stdout)["status"].startswith("interrupted: the best tree found so far")
    assert done.stderr.startswith("bristlecone: warning: ")
    assert load_model("m.json").status_ == "interrupted"


def test_a_closed_standard_output_is_no_failure(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["fit", "gbsg2", "--max-depth", "1", "--model", "m.json"]) == 0
    assert load_model("m.json").n_leaves_ == 2


def test_ctrl_c_outside_the_search_ends_with_130(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, "solve", interrupt)
    status, out, _ = run(capsys, "fit", "gbsg2")
    assert (status, out) == (130, "")


# A program that sends itself Ctrl-C while scikit-learn is imported.
CTRL_C_AT_IMPORT = (
    "import os, signal, sys\n"
    "from bristlecone import _cli as cli\n"
    "class Finder:\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name == 'sklearn':\n"
    "            os.kill(os.getpid(), signal.SIGINT)\n"
    "sys.meta_path.insert(0, Finder())\n"
)


def test_ctrl_c_while_libraries_are_imported_ends_with_130_and_no_word():
    done = run_process("-c", CTRL_C_AT_IMPORT + "sys.exit(cli.main(['fit', 'gbsg2']))\n")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.slow
def test_an_ignored_ctrl_c_does_not_end_a_command(folder):
    program = (
        CTRL_C_AT_IMPORT + "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    done = run_process("-c", program, "fit", "study.csv", *FIT, "--model", "m.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "m.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("--help",), ("fit", "--help"), ("fit", "--estimator", "soft", "--help"), ()],
)
def test_version_and_help_need_no_library(arguments):
    program = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['numpy', 'scipy', 'sklearn', 'narwhals', 'pandas']))\n"
        "from bristlecone import _cli as cli\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    done = run_process("-c", program, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("bristlecone " if "--version" in arguments else "usage: bristl")


@pytest.mark.parametrize("command", ["fit", "predict", "show", "export", "datasets"])
def test_help_has_examples_and_describes_every_option(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert re.search(rf"^examples?:.*bristlecone {command}", text, re.MULTILINE | re.DOTALL)
    given = {"predict": ["a", "b"], "export": ["a", "--to", "sql"], "datasets": []}
    parser = parse([command, *given.get(command, ["a"])])
    for action in parser.parser._actions:
        assert action.help, action.dest


@pytest.mark.parametrize("name", KINDS)
def test_help_of_every_estimator_has_its_options_with_the_defaults_of_the_class(capsys, name):
    kind = KINDS[name]
    for group in kind.groups:
        if group.cls in (MAPPING, BY_NAME):
            continue
        choices = group.cls if isinstance(group.cls, Mapping) else {"": group.cls or kind.cls}
        chosen = [option for option in group.options if option.name == group.made]
        assert [option.default in choices for option in chosen] == [True] * (len(choices) > 1)
        for option, cls in itertools.product(group.options, choices.values()):
            if option in chosen:
                continue
            parameters = inspect.signature(getattr(bristlecone, cls)).parameters
            default = parameters[option.name.removeprefix(f"{group.made}_")].default
            if default is not inspect.Parameter.empty:
                assert option.default == default, option.name
    with pytest.raises(SystemExit):
        main(["fit", "--estimator", name, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert text.count("(default: ") >= sum(len(group.options) for group in kind.groups)
    assert f"bristlecone fit {kind.example.partition(' ')[0]}" in text
    assert kind.what in text
    assert all(action.help for action in parse(["fit", "--estimator", name, "a"]).parser._actions)


# Parameters of every class without an option. Groups and costs by row are columns; seeds and
# verbosity have no effect here; encoders, limits, prices of features and solvers have several
# options.
NO_OPTION = {
    *("encoder", "fairness", "feature_costs", "random_state", "solver_options", "verbose"),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_parameter_of_an_estimator_is_an_option(name):
    kind = KINDS[name]
    parameters = set(inspect.signature(getattr(bristlecone, kind.cls)).parameters)
    options = {option.name for group in kind.groups if not group.made for option in group.options}
    assert options <= parameters
    assert parameters - options <= NO_OPTION
    encoder = [group for group in kind.groups if group.cls == "BinaryEncoder"]
    assert bool(encoder) == ("encoder" in parameters)
    for group in encoder:
        of_encoder = set(inspect.signature(bristlecone.BinaryEncoder).parameters)
        assert {option.name for option in group.options} == of_encoder


def test_progress_reports_the_share_done_and_the_time_left_where_they_are_known(capsys):
    with progress_line(True) as show:
        show(SearchProgress(1.0, 0.5, 0.25, 10))
    assert capsys.readouterr().err == "\r1.0 s: objective 0.5, lower bound 0.25, gap 50%\n"
    with progress_line(True) as show:
        show(SearchProgress(1.0, 0.5, 0.25, 10, share=0.25, seconds_left=90.0))
    assert capsys.readouterr().err.endswith("gap 50%, 25% done, about 90 s left\n")
