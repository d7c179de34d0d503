"""How a test sees that each command of README and docs works (tests/test_page_commands.py).

A command is run in a copy of the checkout, as one step of a story (``STORIES``); or by a test that
is named (``BY``); or it cannot run in a test (``NOT_HERE``: why, and what is run in its place).
There is no fourth kind. Commands stand here as ``page_commands.canonical`` leaves them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One command, or several that one run shows to work. ``run``: what is typed where a page has a
    placeholder or its whole would take long; ``says``: a pattern in what it prints; ``makes``:
    files that are there then; ``before``: shell lines that people would have done first."""

    commands: str | tuple[str, ...]
    run: str = ""
    says: str = ""
    makes: tuple[str, ...] = ()
    before: str = ""

    @property
    def all(self) -> tuple[str, ...]:
        return (self.commands,) if isinstance(self.commands, str) else self.commands


NAME = "02_vector_add"
_FEEDBACK = f"feedback/{{}}/{NAME}/{NAME}.html"
_SHOWN = "demo/" + _FEEDBACK.format("add_missing_load_mask")
_RIGHT = "tests/submissions/right/02_add_plain.py"
_ROOFLINE = "python -m lab_setup roofline"

# A fresh checkout, as its first reader tries it.
CHECKOUT = (
    Step("make", says="make lab +open JupyterLab on the first lesson"),
    Step(("make setup", "python3 -m venv .venv"), "make setup", makes=(".venv/bin/python",)),
    Step("source .venv/bin/activate", "source .venv/bin/activate && type -P nbgrader"),
    Step(
        "pip install -r requirements.txt",
        "pip install --no-index --no-deps -r requirements.txt",  # everything is there
        says="already satisfied: torch==",
    ),
    Step(
        ("make doctor", "python -m lab_setup doctor"),
        "make doctor || true",  # the machine may lack something, and then it says so
        says=r"\d+ broken, \d+ with a limit, \d+ in order",
    ),
    Step("make lint", says="All checks passed!"),
    Step("make build", says="All notebooks are up to date"),
    Step(
        (
            "python -m autograder check 02.add FILE",
            "python -m autograder check 02.add my_file.py",
            "python -m autograder check ID FILE",
        ),
        f"python -m autograder check 02.add {_RIGHT}",
        says="02.add .*8 of 8 points",
    ),
    Step("python -m autograder hint 02.add", says="hint 1 of"),
    Step(
        (f'{_ROOFLINE} --card "RTX 4090"', f"{_ROOFLINE} --json a.json --out a.png"),
        f'{_ROOFLINE} --card "RTX 4090" --kernel 02.add --json a.json --out a.png',
        says="RTX 4090: 1,008.0 GB/s",
        makes=("a.json", "a.png"),
    ),
    Step(f"{_ROOFLINE} --plot docs/measured/roofline_h200.json", says="roofline_h200.png"),
    Step(
        "make demo",
        says=f"what a student gets +{_SHOWN}",
        makes=(_SHOWN, "demo/grades.csv", "demo/gradebook.db"),
    ),
)

# Ada works through the exchange, as a student of the lab; ben and cleo mail their notebooks.
_HER = "cd homes/ada && export JUPYTER_CONFIG_PATH=$OLDPWD JUPYTER_DATA_DIR=$PWD/.jupyter"
_SUBMITS = f"nbgrader submit {NAME} --student=ada)"
_BEN = (
    'python -c "from pathlib import Path; from tests.sample_class import cell, write; '
    f"write(Path(), 'ben', '{NAME}', {{cell('02.add'): Path('{_RIGHT}').read_text()}})\""
)
_RELEASED = f"release/{NAME}/{NAME}.ipynb"
_HIDDEN = f"course/hidden/{NAME}.json"

# docs/INSTRUCTOR.md, "A unit" and "Changes", line by line.
UNIT = (
    Step(
        f"nbgrader generate_assignment {NAME} --force",
        makes=(_RELEASED, "gradebook.db"),
    ),
    Step(f'nbgrader db assignment add {NAME} --duedate="2026-10-02 12:00 UTC"'),
    Step(f"nbgrader release_assignment {NAME}", makes=(f"exchange/triton-course/outbound/{NAME}",)),
    Step(
        (f"nbgrader collect {NAME}", "nbgrader submit"),  # ada has handed in before
        makes=(f"submitted/ada/{NAME}/{NAME}.ipynb", f"submitted/ada/{NAME}/timestamp.txt"),
        before=f"{_BEN} && mkdir -p homes/ada submitted/cleo/{NAME} && "
        f"cp {_RELEASED} submitted/cleo/{NAME} && "
        f"({_HER} && nbgrader fetch_assignment {NAME} && {_SUBMITS}",
    ),
    Step(
        ("make grade A=02", "python -m autograder grade 02"),
        "make grade A=02",
        says=r"ada +0 .* ok[\s\S]*ben +8 .* ok[\s\S]*cleo +0 .* ok[\s\S]*3 submissions: 3 ok",
        makes=tuple(_FEEDBACK.format(who) for who in ("ada", "ben", "cleo")),
    ),
    Step(f"nbgrader release_feedback {NAME}", makes=("exchange/triton-course/feedback",)),
    Step(
        ("nbgrader export --to=grades.csv", "nbgrader export"),
        "nbgrader export --to=grades.csv && cat grades.csv",
        says=rf"{NAME},.*ben.*,8\.0",
    ),
    Step(
        f"nbgrader collect {NAME} --update",
        before=f"cp submitted/ben/{NAME}/{NAME}.ipynb homes/ada/triton-course/{NAME} && "
        f"({_HER} && {_SUBMITS}",
        run=f"nbgrader collect {NAME} --update && grep -c BLOCK_SIZE submitted/ada/{NAME}/*.ipynb",
    ),
    Step(
        "make grade A=02 GRADE_FLAGS=--regrade",
        before=f'sed -i \'s/"n": [0-9]*/"n": 4711/\' {_HIDDEN}',  # a hidden case is edited
        run="make grade A=02",
        says=r"ada +8 .* ok[\s\S]*3 submissions: 3 ok",
    ),
)

STORIES = {"checkout": CHECKOUT, "unit": UNIT}

_NEW = "tests/test_new_assignment.py::"
_KERNELS = "tests/test_kernels_bench.py::"
_ROOF = "tests/test_roofline.py::"
_DOCS = "tests/test_docs.py::"
# Command → the test that runs it, as a function or in a smaller form.
BY = {
    "make sync": (
        "tests/test_sync.py::test_an_edit_returns_to_the_text_and_builds_the_same_notebook"
    ),
    "make bundle": "tests/test_bundle.py::test_it_holds_lessons_releases_and_the_packages_only",
    "make hub": "tests/test_lab_hub.py::test_a_trial_without_the_proxy_says_how_to_get_it",
    "python -m tests.picture": _DOCS + "test_the_picture_of_a_failed_check_is_what_the_check_says",
    'PYTHONPATH="$PWD" .venv/bin/jupyter lab': (
        "tests/test_bundle.py::test_without_make_notebooks_find_the_package_too"
    ),
    "python -m autograder grade 02 --scheduler tcp://HOST:8786": (  # `make stress` has a cluster
        "tests/test_grading_class.py::test_bad_options_are_one_sentence"
    ),
    f"nbgrader autograde {NAME}": (
        "tests/test_grading_class.py::test_nbgrader_and_formgraders_button_give_the_same_scores"
    ),
    "python -m autograder audit [ID or unit …]": (
        "tests/test_audit.py::test_the_command_says_what_it_found"
    ),
    "python -m autograder audit ID": _NEW + "test_the_audit_lets_nothing_through",
    "python -m autograder audit 12.smooth": _NEW + "test_the_audit_lets_nothing_through",
    "python -m autograder audit 02": (
        "tests/test_audit.py::test_a_sample_of_every_exercise_gets_its_verdict"
    ),
    "make new A=12_name": _NEW + "test_the_built_notebooks_are_what_the_new_texts_say",
    "make new A=12_smooth E=smooth": _NEW + "test_the_built_notebooks_are_what_the_new_texts_say",
    "make test TESTS=tests/test_unit12.py": _NEW + "test_its_own_tests_pass",
    "make demo A=12": _NEW + "test_a_class_is_graded",
    _ROOFLINE: _ROOF + "test_no_kernel_is_predicted_faster_than_its_task_allows",
    f"{_ROOFLINE} --kernel 02.add --file {_RELEASED}": (
        _ROOF + "test_a_released_notebook_that_nobody_filled_in_is_a_sentence"
    ),
    f"{_ROOFLINE} --plot a.json": _ROOF + "test_a_record_is_drawn_anywhere",
    f"nbgrader generate_feedback {NAME}": (
        "tests/test_grading_class.py::test_feedback_says_what_it_should_and_nothing_else"
    ),
    "python -m lab_setup gpulock -- COMMAND": (
        "tests/test_lab_gpulock.py::test_the_command_runs_another_one_and_hands_on_its_status"
    ),
    "python -m lab_setup kernels --resume": (
        _KERNELS + "test_a_run_that_goes_on_measures_only_what_is_missing"
    ),
    "python -m lab_setup kernels --offline 89": (
        _KERNELS + "test_launches_are_compiled_without_a_card_into_tritons_cache"
    ),
    "python -m lab_setup kernels --plot OUT": (
        _KERNELS + "test_every_ladder_and_family_has_a_figure_that_names_card_and_date"
    ),
    "python -m lab_setup kernels --join A B": (
        _KERNELS + "test_runs_on_one_card_are_joined_and_the_last_figure_counts"
    ),
    "python -m lab_setup kernels --page": (
        _KERNELS + "test_the_page_in_docs_is_what_the_figures_say"
    ),
    "python -m tests.others": "tests/test_others.py::test_the_exit_status_and_one_row_a_kernel",
    "python -m lab_setup.hub.install --roster roster.csv --dry-run": (
        "tests/test_lab_browser.py::test_a_class_from_login_to_feedback"
    ),
    "python -m lab_setup.hub.install --roster roster.csv": (
        "tests/test_lab_browser.py::test_a_class_from_login_to_feedback"
    ),
    "unzip /mnt/c/Users/YOU/Downloads/triton-course.zip": (
        "tests/test_bundle.py::test_make_lab_would_start_on_the_first_lesson_without_building"
    ),
}

# These start a server; a test of its own waits for the first page and stops it.
LAB = ("make lab", "make lab PORT=8890", "cd triton-course && make lab")

_NO_CARD = "There is no card here", "No card here"
_SYSTEM = "changes the machine"
_CARD = "measures a card"
# Command → why it cannot run in a test; what is run in its place; a pattern in what that prints.
NOT_HERE = {
    "make test": ("it would run itself", "make -n test", "-m pytest -n 2"),
    "make versions": ("fetches 3 GB", "make -n versions", "-m tests.versions -n 2"),
    "python -m tests.links": ("follows links", "python -c 'import tests.links'", ""),
    "python -m tests.versions 3.9.0 --files lower record": (
        "fetches a Triton", "python -m tests.versions --help", "--files"),
    "python -m tests.stress_grading": (
        "an hour", "python -m tests.stress_grading --help", "scheduler"),
    'make lab PIP_FLAGS="--extra-index-url ADDRESS"': (
        "fetches gigabytes", "make -n lab VENV=new PIP_FLAGS='--extra-index-url ADDRESS'",
        "pip install .*--extra-index-url ADDRESS -r requirements.txt"),
    "make lab VENV_FLAGS=--system-site-packages": (
        "fetches gigabytes", "make -n lab VENV=new VENV_FLAGS=--system-site-packages",
        "-m venv --system-site-packages new"),
    "make setup VENV=/opt/triton-venv PYTHON=/usr/bin/python3": (
        "fetches gigabytes", "make -n setup VENV=/no/venv PYTHON=/usr/bin/python3",
        "/usr/bin/python3 -m venv  /no/venv"),
    "python -m lab_setup kernels": (_CARD, "python -m lab_setup kernels || true", _NO_CARD[0]),
    "python -m lab_setup kernels --only products": (
        _CARD, "python -m lab_setup kernels --only products || true", _NO_CARD[0]),
    "python -m lab_setup kernels --seconds 300": (
        _CARD, "python -m lab_setup kernels --seconds 300 || true", _NO_CARD[0]),
    "python -m tests.device.kernels OUTDIR 520": (
        _CARD, "python -m tests.device.kernels OUTDIR 520 || true", _NO_CARD[1]),
    "python -m tests.device.roofline OUTDIR": (
        _CARD, "python -m tests.device.roofline OUTDIR || true", _NO_CARD[1]),
    "python -m tests.device.dram OUT.json": (
        _CARD, "python -m tests.device.dram OUT.json || true", _NO_CARD[1]),
    "python -m tests.device.operations": (
        _CARD, "python -m tests.device.operations || true", _NO_CARD[1]),
    'git grep -n --untracked "FILL IN" -- autograder/exercises course/assignments course/lessons '
    "tests/submissions": (
        "nothing is new here", "git grep -n --untracked 'FILL IN' -- course/skeleton", "FILL IN"),
    "pip install --no-deps liger-kernel fla-core flash-linear-attention flag-gems einops": (
        "fetches packages", "pip install --help", "--no-deps"),
    "pip install jupyterhub-systemdspawner": ("fetches a package", "pip install --help", ""),
    **dict.fromkeys(
        (
            "apt install gcc python3-dev",
            "apt install bubblewrap",
            "apt install make git bubblewrap gcc python3-venv python3-dev npm",
            "systemctl disable triton-course",
            "userdel -r NAME",
            "apt update && apt install make git unzip python3-venv bubblewrap",
            "npm install -g configurable-http-proxy@5.3.0",
            "systemctl daemon-reload; systemctl enable --now triton-course",
            "systemctl restart triton-course",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            "passwd",
        ),
        (_SYSTEM, "", ""),
    ),
    "nvidia-smi": ("needs a card", "", ""),
    "nvidia-smi -lgc": ("needs a card", "", ""),
    "journalctl -u triton-course": ("needs the lab box", "", ""),
    "wsl --install -d Ubuntu-24.04": ("Windows", "", ""),
    "wsl --status": ("Windows", "", ""),
    "git clone …": ("the address is the reader's", "", ""),
}  # fmt: skip
