# Everything a fresh machine needs is Python 3.11 or later, git and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Else each worker of the tests compiles every one of them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help map demo demo-machines test test-all test-fast test-lowest lint docs wheel-test coverage changelog bench bench-cheap bench-peers clients host charts picture torture torture-land torture-team checker fuzz collisions repositories replay mutants clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint,release]'
	@touch $(STAMP)

map:  ## print every module with the first line of its docstring
	@$(PYTHON) docs/map.py

# What QueenBee itself needs, and none of the linters and test tools.
$(VENV)/.plain: pyproject.toml
	test -e $(STAMP) || $(PYTHON) -m venv $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $(VENV)/.plain

demo: $(VENV)/.plain  ## watch three agents and a person share one repository, in 20 seconds
	$(BIN)/python -m bench.demo

demo-machines: $(VENV)/.plain  ## watch three machines share one git remote, and one lose its network
	$(BIN)/python -m bench.demo_machines

test: $(STAMP)  ## run the tests that every change must pass, in 20 minutes on two cores
	$(BIN)/python -m pytest -q -n auto --dist worksteal $(PYTEST_ARGS)

test-all: $(STAMP)  ## run every test, with every example of every law and every variant
	$(BIN)/python -m pytest -q -n auto --dist worksteal --everything $(PYTEST_ARGS)

test-fast: $(STAMP)  ## run the tests that are not marked slow, in under a minute
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not slow" $(PYTEST_ARGS)

build/lowest/.installed: pyproject.toml
	$(PYTHON) -m venv build/lowest
	build/lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/lowest/bin/uv pip install --quiet --python build/lowest --resolution lowest-direct --editable '.[test]'
	@touch $@

test-lowest: build/lowest/.installed  ## run the tests of what users call, with the lowest versions that are allowed
	build/lowest/bin/python -m pytest -q -n auto --dist worksteal -m "not slow" $(addprefix tests/,cli core library mcp_surface tui web)

lint: $(STAMP)  ## formatting, lint, types, layers, changelog fragments, workflows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/towncrier build --draft > /dev/null
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/zizmor --offline --quiet --no-progress .github action.yml

coverage: $(STAMP)  ## which lines and branches the tests run, processes included; fails below the floor
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[coverage]'
	rm -rf .coverage && mkdir .coverage
	$(BIN)/coverage run -m pytest -q -n auto --dist worksteal --everything $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet --fail-under 0
	$(BIN)/coverage json --quiet --fail-under 0 -o .coverage/figures.json
	@$(BIN)/python -c 'import json; t = json.load(open(".coverage/figures.json"))["totals"]; \
	  print("lines {percent_statements_covered_display} %, branches {percent_branches_covered_display} %".format(**t))'
	$(BIN)/coverage report

build/docs/.installed: pyproject.toml
	$(PYTHON) -m venv build/docs
	build/docs/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: build/docs/.installed  ## build the site into build/site; fails at a link that leads nowhere
	NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --quiet --strict

# What builds the packages that PyPI gets is pinned, with hashes.
build/release/.installed: packaging/build.txt
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

wheel-test: build/release/.installed  ## build the sdist and the wheel, install each, and use it
	rm -rf dist
	build/release/bin/python -m build --no-isolation --outdir dist
	.ci/smoke-test dist/*.whl $(PYTHON)
	.ci/smoke-test dist/*.tar.gz $(PYTHON)

changelog: $(STAMP)  ## collect changelog.d into CHANGELOG.md, under the version of the code
	$(BIN)/towncrier build --yes

bench: $(STAMP)  ## print the cost table (figures, no verdicts), and write it: JSON=build/bench.json
	$(BIN)/python -m bench --json $(or $(JSON),build/bench.json)

bench-cheap: $(STAMP)  ## compare what is measured in a minute or two with the last release
	$(BIN)/python -m bench --cheap --json build/bench-cheap.json
	@echo
	$(BIN)/python -m bench.compare bench/results/release.json build/bench-cheap.json

bench-peers: $(STAMP)  ## the same work with other tools, in one run: QUEEN_BENCH_PEERS=FILE for more of them
	$(PYTHON) -m venv --clear build/peers
	build/peers/bin/python -m pip install --quiet --disable-pip-version-check 'mcp-agent-mail==0.1.0'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench.peers --agent-mail build/peers/bin/python \
	  --json bench/results/peers.json --charts docs/charts

clients: $(STAMP)  ## run coding agents from npm against a scripted model: CLIENTS=codex,gemini NEWEST=1
	$(BIN)/python -m bench.clients $(if $(CLIENTS),--only $(CLIENTS)) $(if $(NEWEST),--newest)

host: $(STAMP)  ## land by pull request with the real gh, against a scripted host: GH=/path/to/gh
	test -x "$$(command -v $(or $(GH),gh))"
	QUEEN_TEST_GH="$$(command -v $(or $(GH),gh))" $(BIN)/python -m pytest --everything $(PYTEST_ARGS) \
	    tests/git/test_proposing*.py tests/git/test_feedback.py tests/git/test_review.py \
	    tests/git/test_hosted_issues.py tests/starting/test_proposing_*.py

charts: $(STAMP)  ## the same with a million messages, and charts into docs/charts
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench --million --charts docs/charts

picture: $(STAMP)  ## draw the README's pictures anew, from real runs
	$(BIN)/python -m bench.picture
	$(BIN)/python -m bench.board --picture docs/pictures/watch.svg

torture: $(STAMP)  ## crashes, git, races, clones, full disks, and all at once: STORM=600 seconds
	$(BIN)/python -m tests.torture all --storm-seconds $(or $(STORM),600)
	$(BIN)/python -m tests.torture all --rotating --count 40 --operations 20000 --histories 20 --storm-seconds 60

torture-land: $(STAMP)  ## 16 agents land while some are killed or stopped, and git fails: LANDINGS=500
	$(BIN)/python -m tests.torture landings --landings $(or $(LANDINGS),500)

torture-team: $(STAMP)  ## 8 agents of queen start do 40 issues while they and it are killed and stopped
	$(BIN)/python -m tests.torture team

checker: $(STAMP)  ## a checker that knows only the pages, over files, a remote and a database: OPERATIONS=20000
	for world in files remote database; do \
	  $(BIN)/python -m tests.checker $$world --operations $(or $(OPERATIONS),20000) || exit 1; done
	$(BIN)/python -m tests.checker broken

fuzz: $(STAMP)  ## a million hostile lines, and a hundred thousand documents
	$(BIN)/python -m tests.torture fuzz --executions 1000000
	$(BIN)/python -m tests.torture fuzz-documents --executions 100000

collisions: $(STAMP)  ## compare the verdict on 300 pairs of worktrees with what git merge does: PAIRS=300
	COLLISION_PAIRS=$(or $(PAIRS),300) $(BIN)/python -m pytest -q -n auto tests/git/test_collisions_truth.py

repositories: $(STAMP)  ## land in repositories with hook managers, Git LFS, gpg and bubblewrap: needs node and the network
	$(BIN)/python -m bench.hook_managers
	@echo
	$(BIN)/python -m bench.repository_programs

replay: $(STAMP)  ## how often the join rules are right on conflicted merges: CLONES='DIR...', git repositories
	$(BIN)/python -m bench.replay $(CLONES) $(if $(SHOW),--show '$(SHOW)')

mutants: $(STAMP)  ## break what promises rest on, then random lines: SAMPLE=150 SEED=1, FOLDERS='core store'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutation]'
	$(BIN)/python -m pytest -q tests/mutation
	$(BIN)/python -m tests.mutation promises $(if $(FOLDERS),--folders $(FOLDERS))
	$(BIN)/python -m tests.mutation sample $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(if $(FOLDERS),--folders $(FOLDERS))

clean:  ## remove what the targets made
	rm -rf $(VENV) dist .coverage .mutants .hypothesis .mypy_cache .ruff_cache .pytest_cache
