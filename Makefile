# One command each; `make` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup lab

VENV := .venv
PY := $(VENV)/bin/python
# PIP_FLAGS reach pip (README: PyTorch's CPU build), VENV_FLAGS reach python -m venv
# (--system-site-packages keeps a torch that the machine has), LAB_FLAGS reach JupyterLab.
PIP_FLAGS ?=
VENV_FLAGS ?=
LAB_FLAGS ?=
PORT ?= 8888
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3.12 python3.11 python3.13 python3 python; do \
	$$p -c '$(FITS)' 2>/dev/null && { echo $$p; break; }; done)
FIRST := $(firstword $(sort $(wildcard notebooks/01_*.ipynb notebooks/*.ipynb)))

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: requirements.txt
	@test -n "$(PYTHON)" || { echo "The course runs on Python 3.11, 3.12 or 3.13, and none of them" \
	"is on the PATH. Install one, or name it: make lab PYTHON=/path/to/python3.12"; exit 1; }
	@$(PYTHON) -c '$(FITS)' 2>/dev/null || { echo "$(PYTHON) is not on this machine or no Python 3.11," \
	"3.12 or 3.13. Name one, for example PYTHON=/usr/bin/python3"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV_FLAGS) $(VENV) || { rm -rf $(VENV); echo "$(PYTHON)" \
	"cannot make virtual environments. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "Installing the packages of requirements.txt into $(VENV): a few minutes, once."
	$(PY) -m pip install --disable-pip-version-check $(PIP_FLAGS) -r requirements.txt
	@touch $@

# Notebooks anywhere find the packages through a .pth file: no install step, and it works without
# git. Written on every call because the folder may have moved. JupyterLab's news pop-up is off.
setup: $(VENV)/.installed  ## make .venv with everything in it
	@$(PY) -c 'import pathlib, site; \
	pathlib.Path(site.getsitepackages()[0], "triton-course.pth").write_text("$(CURDIR)\n"); \
	news = pathlib.Path("$(VENV)/share/jupyter/lab/settings/overrides.json"); \
	news.parent.mkdir(parents=True, exist_ok=True); \
	news.write_text("{\"@jupyterlab/apputils-extension:notification\": {\"fetchNews\": \"false\"}}")'

lab: setup  ## open JupyterLab on the first lesson
	@test ! -d course || $(PY) -m course.build --missing
	$(PY) -m jupyterlab --port=$(PORT) --ServerApp.root_dir="$(CURDIR)" \
	--LabApp.default_url="/lab/tree/$(FIRST)" \
	$(if $(filter 0,$(shell id -u)),--allow-root) $(LAB_FLAGS)

# ---- From here on for instructors (course/bundle.py leaves it out).
.PHONY: test versions others new build sync bundle demo grade bench stress lint doctor hub

JOBS ?= 2

test: setup  ## run every test
	@command -v bwrap >/dev/null || echo "bubblewrap is missing, and the tests of grading need it:" \
	"sudo apt install bubblewrap"
	$(PY) -m pytest -n $(JOBS) $(TESTS)

versions: setup  ## the interpreter's tests under every Triton that is supported (long, once 3 GB)
	$(PY) -m tests.versions -n $(JOBS)

others: setup  ## public kernels in the interpreter; T=Triton's python/tutorials (docs/INTERPRETER.md)
	$(PY) -m tests.others $(if $(T),--tutorials $(T))

new: setup  ## a new assignment that works, to be filled: make new A=12_name E=exercise
	@test -n "$(A)" || { echo "Which one? For example: make new A=12_name E=scale"; exit 1; }
	@$(PY) -m course.new $(A) $(E)

build: setup  ## make every notebook from its text (FORCE=1 overwrites edited ones)
	$(PY) -m course.build $(if $(FORCE),--force)

sync: setup  ## bring edits made in JupyterLab back into the texts
	$(PY) -m course.sync

bundle: setup  ## make dist/triton-course.zip, which is what students get
	$(PY) -m course.bundle

demo: setup  ## grade a sample class in demo/ and say where to look (A=01: of unit 01)
	$(PY) -m course.demo $(A)

grade: setup  ## grade submitted/, e.g. make grade A=02
	@test -n "$(A)" || { echo "Which assignment? For example: make grade A=02"; exit 1; }
	@name=$$(basename source/$(A)*); test ! -d source/$$name || $(PY) -m nbgrader \
	generate_assignment $$name --force --CourseDirectory.release_directory=.grading/release \
	--log-level=ERROR  # enters it in the gradebook and leaves release/ alone
	$(PY) -m autograder grade $(A) --feedback $(GRADE_FLAGS)

bench: setup  ## measure the interpreter, the check and the grader (B=check: one of them)
	$(PY) -m tests.bench

lint: setup  ## check style and format
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

stress: setup  ## grade a large hostile class, killing the grader at random (long; not in CI)
	$(PY) -m tests.stress_grading class 200
	$(PY) -m tests.stress_grading kill 20
	$(PY) -m tests.stress_grading scheduler 12

doctor: setup  ## look over this machine
	$(PY) -m lab_setup doctor

hub: setup  ## start a trial JupyterHub on this machine, with dummy accounts
	$(PY) -m lab_setup.hub.trial $(HUB_FLAGS)
