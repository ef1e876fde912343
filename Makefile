# Everything a newcomer needs: `make demo` and `make test`. They share an environment, and each installs what it lacks.
# `make test-vllm` needs no GPU.
PYTHON ?= python3
ENV := .venv
OUT ?= out
BIN := $(ENV)/bin
VLLM_ENV := .venv-vllm
KIT_ENV := .venv-vlmevalkit
SWIFT_ENV := .venv-ms-swift
LOWEST_ENV := .venv-lowest
RECIPES_ENV := .venv-recipes
GATEWAY_ENV := .venv-gateway
REAL_ENV := .venv-real
VLLM_PORT ?= 8765
VLLM_URL := http://127.0.0.1:$(VLLM_PORT)
# what the demo judges: tasks, or groups of them in task_configs/tasks.yaml
DEMO_TASKS ?= vieval_demo
DEMO_JUDGES := ssim psnr edge_f1 histogram sharpness
STEPS := 2

# a test file stays in one process, as what it makes once (a server, weights, a cluster, a replay) is made there;
# those that take longest begin first (see tests/conftest.py)
WORKERS ?= auto
PARALLEL := -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# folder of published verdicts for `make leaderboard`; empty for those that `vieval prepare published_verdicts` fetched
PUBLISHED ?=

.PHONY: demo demo-light demo-picture tutorial-pictures hero leaderboard test test-unit test-extras test-fast approve test-page test-vllm test-vlmevalkit test-ms-swift test-recipes test-gateway test-real test-attack test-wheel test-core test-lowest constraints licences train-adiee-demo lint docs tasks clean

# $(call run,LOG,COMMAND): a line every five seconds with the last thing that a long command said, and how long it took
define run
mkdir -p $(dir $(1)); begun=$$(date +%s); ( $(2) ) > $(1) 2>&1 & job=$$!; trap 'kill $$job 2> /dev/null; exit 130' INT TERM; \
while sleep 1; kill -0 $$job 2> /dev/null; do spent=$$(($$(date +%s) - begun)); [ $$((spent % 5)) -ne 0 ] || \
  printf '   %4s s  %s\n' $$spent "$$(tail -c 2000 $(1) | tr '\r' '\n' | grep . | tail -n 1 | cut -c 1-86)"; done; \
wait $$job || { tail -n 20 $(1); echo "== that failed; all that it said is in $(1)"; exit 1; }; \
echo "   done in $$(($$(date +%s) - begun)) s"
endef
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --editable
LIGHT := ".[http,metrics,text]"
CORE := ".[http,tables,filter,hub,metrics,video,completion,test]"
LMMS_EVAL := ".[lmms-eval,http,metrics]"
comma := ,
EXTRAS := lmms-eval,http,tables,filter,ray,hub,metrics,scorers,train,generators,video,text,tools,completion,docs,test
ALL := ".[$(EXTRAS)]"

# stamps of what an environment was made from: a second call is quick unless setup.cfg changed
$(BIN)/python:
	@$(PYTHON) -m venv $(ENV)

$(ENV)/light: setup.cfg pyproject.toml | $(BIN)/python
	@$(call run,$(OUT)/install-light.log,$(PIP_INSTALL) $(LIGHT))
	@touch $@

$(ENV)/lmms-eval: setup.cfg pyproject.toml | $(BIN)/python
	@$(call run,$(OUT)/install-lmms-eval.log,$(PIP_INSTALL) $(LMMS_EVAL))
	@touch $@

$(ENV)/core: setup.cfg pyproject.toml | $(BIN)/python
	@$(call run,$(OUT)/install-core.log,$(PIP_INSTALL) $(CORE))
	@touch $(ENV)/light $@

$(ENV)/ready: setup.cfg pyproject.toml | $(BIN)/python
	@echo "== install all extras in $(ENV) (a few minutes and 8 GB the first time; less after make demo)"
	@$(call run,$(OUT)/install.log,$(PIP_INSTALL) $(ALL))
	@touch $(ENV)/light $(ENV)/core $(ENV)/lmms-eval $@

# the steps of the demo; those of demo-light are its first two
demo: STEPS := 4
demo-light:
	@echo "== 1 of $(STEPS): install the light part in $(ENV) (about a minute and 620 MB the first time, no PyTorch)"
	@$(MAKE) --no-print-directory $(ENV)/light
	@echo "== 2 of $(STEPS): vieval demo: which of two generators spells the titles of posters? (about 20 s)"
	@rm -rf $(OUT)/demo-light && mkdir -p $(OUT)
	@$(BIN)/vieval demo --out $(OUT)/demo-light
	@echo "== open this page in a browser: $(abspath $(OUT))/demo-light/rank.html"

# the page of the drawn benchmark, which is part of the documentation
$(OUT)/demo-drawn/report.html: $(ENV)/light
	@mkdir -p $(OUT)/demo-drawn
	$(BIN)/vieval score --benchmark vieval_demo $(addprefix --judge ,$(DEMO_JUDGES)) --out $(OUT)/demo-drawn/verdicts.jsonl > $(OUT)/demo-drawn/score.log
	$(BIN)/vieval report $(OUT)/demo-drawn/verdicts.jsonl --out $(OUT)/demo-drawn

demo: demo-light
	@echo "== 3 of 4: install lmms-eval in $(ENV), which brings PyTorch (five to ten minutes and 7 GB the first time)"
	@$(MAKE) --no-print-directory $(ENV)/lmms-eval
	@echo "== 4 of 4: judge drawn images with known defects, one by one and in pairs, as tasks of lmms-eval ($(DEMO_TASKS)), and make a page (about a minute)"
	@rm -rf $(OUT)/demo $(OUT)/demo-report
	@$(call run,$(OUT)/demo.log,$(BIN)/lmms-eval --model vieval_scorer --tasks $(DEMO_TASKS) --output_path $(OUT)/demo --log_samples)
	@$(BIN)/vieval report $(OUT)/demo --out $(OUT)/demo-report > $(OUT)/demo-report.log
	@echo "   which judge finds the defects? its title says it; 1 is the order of the known defects, 0 is chance"
	@echo "   where does each fail? the tables of task types; which images? those under the title, and the gallery"
	@echo "   what did it take? $(OUT)/demo.log has the run, $(OUT)/demo-report.log the numbers"
	@echo "== open this page in a browser: $(abspath $(OUT))/demo-report/report.html"

# the picture of the drawn benchmark's page, which is part of the documentation; it needs chromium
demo-picture: $(OUT)/demo-drawn/report.html
	$(BIN)/python docs/make_picture.py $(OUT)/demo-drawn/report.html docs/demo.webp 1000x900

# the pictures of the tutorials, of what their commands leave; they need chromium (a minute and a half)
tutorial-pictures: $(ENV)/ready $(ENV)/page/ready
	$(BIN)/python docs/make_tutorial_pictures.py

# README's picture of posters with planted faults, which a test makes again
hero: $(ENV)/light
	$(BIN)/python docs/make_hero.py

# the page of published judges, its data and its picture, which are part of the documentation; the picture needs chromium
leaderboard: $(ENV)/ready
	$(BIN)/vieval leaderboard make --out docs/leaderboard $(if $(PUBLISHED),--published $(PUBLISHED))
	$(BIN)/python docs/make_picture.py docs/leaderboard/index.html docs/leaderboard/leaderboard.webp 1280x860 docs/leaderboard/leaderboard-dark.webp
	$(BIN)/python docs/make_judge_table.py $(PUBLISHED)

# what other targets run; setup.cfg has the same for pytest without make
ELSEWHERE := not vllm and not attack and not vlmevalkit and not wheel and not extras and not real
QUICK := -m "not slow and not page and $(ELSEWHERE)"

# what fails fastest comes first: lint, whose mypy takes a processor for 90 s where it has no cache, beside unit tests;
# the attack is alone, as it watches the clock
test: $(ENV)/ready
	@echo "== 1 of 3: lint and unit tests (a minute and a half on two cores)"
	@$(MAKE) --no-print-directory --jobs 2 lint test-unit
	@echo "== 2 of 3: all other tests (those on public data need ../shared/data beside this checkout), the longest first"
	$(BIN)/python -m pytest -rs $(PARALLEL) -m "not unit and $(ELSEWHERE)"
	@echo "== 3 of 3: the attack in its short form (make test-attack: all of it)"
	$(BIN)/python -m pytest -rs -m attack tests/attack

test-unit: $(ENV)/ready
	$(BIN)/python -m pytest -rs $(PARALLEL) -m unit

# long kills, trainings, tutorials and simulations, of each of which make test has a short case
test-extras: $(ENV)/ready
	@echo "== tests marked extras"
	$(BIN)/python -m pytest -rs $(PARALLEL) -m extras

# the outputs of commands in tests/approved, written anew (CASES: those of some modules): read the difference before you commit it
CASES ?= tests/approved
approve: $(ENV)/ready
	$(BIN)/python -m pytest -rs $(PARALLEL) --snapshot-update -m "not vllm" $(CASES)
	git --no-pager diff --stat -- tests/approved

# without what takes long (marker `slow`): under two minutes on two cores
test-fast: $(ENV)/ready
	$(BIN)/python -m pytest -rs $(PARALLEL) $(QUICK)

# the same without PyTorch and harnesses, on any Python that VIEval runs on
test-core: $(ENV)/core
	$(BIN)/python -m pytest -rs $(PARALLEL) $(QUICK)

# the same with the lowest versions that setup.cfg allows, resolved by uv, and the attack, as SECURITY.md is true of them too:
# the versions of what tests need are the newest
LOWEST := http tables filter hub metrics video text
test-lowest: setup.cfg
	$(PYTHON) -m venv $(LOWEST_ENV)
	$(LOWEST_ENV)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST_ENV)/bin/uv pip compile --quiet setup.cfg --resolution lowest-direct --no-annotate --no-header \
	  $(addprefix --extra ,$(LOWEST)) --python $(LOWEST_ENV)/bin/python --output-file $(LOWEST_ENV)/lowest.txt
	$(LOWEST_ENV)/bin/uv pip install --quiet --python $(LOWEST_ENV)/bin/python --constraint $(LOWEST_ENV)/lowest.txt \
	  --editable ".[http,tables,filter,hub,metrics,video,text,test]"
	$(LOWEST_ENV)/bin/python -m pytest -rs $(PARALLEL) $(QUICK)
	$(LOWEST_ENV)/bin/python -m pytest -rs -m attack tests/attack

# the versions that a release is built and tested with, in .ci/constraints.txt: those that uv finds today, for all extras that share
# an environment; the oldest Python, as that is what a release runs
constraints: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	printf 'build\ntwine\n' | $(BIN)/uv pip compile --quiet --upgrade setup.cfg - --no-annotate --no-header --python-version 3.11 \
	  $(addprefix --extra ,$(subst $(comma), ,$(EXTRAS))) --output-file .ci/constraints.txt

# Debian's chromium and node where they are not installed yet (that needs root), and two packages of npm
$(ENV)/page/ready: tests/page/package.json
	@echo "== a browser for tests of pages: chromium, and axe-core and playwright-core in $(ENV)/page (a minute the first time)"
	@command -v chromium && command -v npm || { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	  $$(command -v chromium > /dev/null || echo chromium) $$(command -v npm > /dev/null || echo nodejs npm); }
	@mkdir -p $(ENV)/page && cp tests/page/package.json $(ENV)/page
	npm install --prefix $(ENV)/page --silent --ignore-scripts --no-audit --no-fund
	@touch $@

# the tests marked page: pages opened in a real browser
test-page: $(ENV)/ready $(ENV)/page/ready
	$(BIN)/python -m pytest -rs -m page tests/page --durations=5

$(VLLM_ENV)/ready: setup.cfg tests/vllm_server.sh
	@echo "== making an environment with vLLM for CPUs in $(VLLM_ENV) (5 minutes and 3.5 GB the first time)"
	PYTHON=$(PYTHON) tests/vllm_server.sh $(VLLM_ENV)
	$(VLLM_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[http]"
	@touch $@

# the tests marked vllm, with a server of their own that is stopped afterwards
test-vllm: $(ENV)/ready $(VLLM_ENV)/ready
	@echo "== building a tiny model with random weights in $(OUT)/tiny"
	@mkdir -p $(OUT)
	$(BIN)/python tests/tiny_model.py $(OUT)/tiny
	@echo "== serving it at $(VLLM_URL), up in about a minute (log: $(OUT)/vllm.log)"
	@tests/vllm_server.sh $(VLLM_ENV) $(abspath $(OUT)/tiny) $(VLLM_PORT) > $(OUT)/vllm.log 2>&1 & server=$$!; \
	  trap 'echo "== stopping the server"; kill $$server 2> /dev/null; wait $$server' EXIT; \
	  until $(BIN)/python -c "import urllib.request as u; u.urlopen('$(VLLM_URL)/health')" 2> /dev/null; do \
	    kill -0 $$server 2> /dev/null || { tail -n 20 $(OUT)/vllm.log; exit 1; }; sleep 1; \
	  done; \
	  echo "== tests marked vllm"; \
	  VIEVAL_VLLM_URL=$(VLLM_URL)/v1 VIEVAL_VLLM_PYTHON=$(abspath $(VLLM_ENV)/bin/python) \
	    $(BIN)/python -m pytest -rs -m vllm --durations=0

$(KIT_ENV)/ready: setup.cfg tests/vlmevalkit/environment.sh
	@echo "== making an environment with VLMEvalKit in $(KIT_ENV) (5 minutes and 3 GB the first time)"
	PYTHON=$(PYTHON) tests/vlmevalkit/environment.sh $(KIT_ENV)
	@touch $@

# the tests marked vlmevalkit, with each package of VLMEvalKit; lmms-eval judges beside them in its own environment
test-vlmevalkit: $(ENV)/ready $(KIT_ENV)/ready
	@echo "== tests marked vlmevalkit, with ms-vlmeval"
	VIEVAL_LMMS_EVAL_PYTHON=$(abspath $(BIN)/python) $(KIT_ENV)/bin/python -m pytest -rs -m vlmevalkit --durations=5 tests/vlmevalkit tests/hosts/test_host_contract.py
	@echo "== the same with nvidia-vlmeval"
	VIEVAL_LMMS_EVAL_PYTHON=$(abspath $(BIN)/python) PYTHONPATH=$(KIT_ENV)/nvidia \
	  $(KIT_ENV)/bin/python -m pytest -rs -m vlmevalkit --durations=5 tests/vlmevalkit tests/hosts/test_host_contract.py

# the reward page's block of ms-swift, which needs an older TRL; pip finds a torch for CPUs where PIP_EXTRA_INDEX_URL names its index
test-ms-swift: $(ENV)/ready
	$(PYTHON) -m venv $(SWIFT_ENV)
	$(SWIFT_ENV)/bin/python -m pip install --quiet --disable-pip-version-check torch "ms-swift>=4.6" --editable ".[http]"
	VIEVAL_MS_SWIFT_PYTHON=$(abspath $(SWIFT_ENV)/bin/python) $(BIN)/python -m pytest -rs tests/rewards/test_trainer_blocks.py

# the gate page's recipes for Inspect and promptfoo, in an environment of their own; it needs npm
test-recipes: $(ENV)/core
	$(PYTHON) -m venv $(RECIPES_ENV)
	$(RECIPES_ENV)/bin/python -m pip install --quiet --disable-pip-version-check inspect-ai --editable ".[http]"
	npm install --silent --no-save --prefix $(RECIPES_ENV) promptfoo
	VIEVAL_INSPECT_PYTHON=$(abspath $(RECIPES_ENV)/bin/python) VIEVAL_PROMPTFOO=$(abspath $(RECIPES_ENV)) \
	  $(BIN)/python -m pytest -rs tests/docs/test_gate_page.py

# a real gateway in an environment of its own; 1.82.7 and 1.82.8 were compromised (PYSEC-2026-2), so the version is exact
test-gateway: $(ENV)/core
	$(PYTHON) -m venv $(GATEWAY_ENV)
	$(GATEWAY_ENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/gateway_requirements.txt
	VIEVAL_GATEWAY=$(abspath $(GATEWAY_ENV)/bin/litellm) $(BIN)/python -m pytest -rs tests/backends/test_gateway.py

# services that people run, from Debian's packages, which are installed where they are not yet (that needs root): Slurm on one
# node, nginx and Prometheus' checker; and parts from the package index, each in an environment of its own. A part that does not
# install is passed over: its tests say why
REAL := slurm-wlm munge nginx-light prometheus
REAL_PARTS := llama ray readers s3
$(REAL_ENV)/%/ready: tests/real/%.txt
	@echo "== $* in $(REAL_ENV)/$* (log: $(REAL_ENV)/$*.log)"
	@rm -rf $(@D) && mkdir -p $(@D) && $(PYTHON) -m venv $(@D)
	@timeout 900 $(@D)/bin/python -m pip install --disable-pip-version-check --requirement $< > $(REAL_ENV)/$*.log 2>&1 \
	  && touch $@ || echo "   does not install"

test-real: $(ENV)/ready $(REAL_PARTS:%=$(REAL_ENV)/%/ready)
	@for program in slurmctld munged nginx promtool; do command -v $$program > /dev/null || missing=1; done; \
	  test -z "$$missing" || { apt-get update -qq && apt-get install -y -qq --no-install-recommends $(REAL); }
	$(BIN)/python -m pytest -rs -m real tests/real

# the wheel, built, installed away from the checkout with the extra http alone, and used there without a network
test-wheel: $(ENV)/core
	$(BIN)/python -m pytest -rs -m wheel tests/packaging --durations=3

# a server that fails in a hundred ways, hostile files, kill -9, full disks: a table of what was lost (ten minutes at most)
test-attack: $(ENV)/ready
	PYTHONPATH=tests $(BIN)/python -m attack.run $(ATTACK)

# ADIEE's scorer learnt from nothing on drawn edits, beside the same base that learns to say numbers: twenty minutes
train-adiee-demo: $(ENV)/ready
	$(BIN)/python bench/train_adiee.py $(OUT)/train-adiee

# licences of what is shipped, installed by an extra, or fetched; an exit code of 1 where one is not allowed
licences: $(ENV)/ready
	@mkdir -p $(OUT)
	$(BIN)/python .ci/licences.py > $(OUT)/licences.md
	@echo "== in $(OUT)/licences.md; for another environment: .ci/licences.py its/bin/python"

# the type checker sees the package as installed, where judges/ is vieval_plugin.judges
lint: $(ENV)/ready
	@echo "== ruff, zizmor, the prose of the pages, and mypy"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/zizmor --offline --quiet .github action.yml
	$(BIN)/python docs/check_prose.py
	rm -rf build $(ENV)/typed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(ENV)/typed .
	cd $(ENV)/typed && MYPYPATH=. ../bin/mypy --cache-dir ../mypy_cache --config-file ../../setup.cfg --python-executable ../bin/python -p vieval_plugin
	rm -rf build

# the documentation as a site in $(OUT)/docs, with pages generated from the code and the page of the light demo
docs: $(ENV)/ready $(OUT)/demo-drawn/report.html
	@echo "== build the site (about 20 s)"
	@rm -rf $(OUT)/docs $(OUT)/docs-src && mkdir -p $(OUT)/docs-src
	@cp $(OUT)/demo-drawn/report.html $(OUT)/docs-src/demo.html
	$(BIN)/python -m sphinx -W -n --keep-going -q -b html -d $(OUT)/docs-trees -c docs $(OUT)/docs-src $(OUT)/docs
	@echo "== open this page in a browser: $(abspath $(OUT))/docs/index.html"

# lmms-eval's files of plain tasks and their README, from task_configs/tasks.yaml; README's table of judges, from their specs and the leaderboard; the schemas of our JSON files
tasks: $(ENV)/ready
	$(BIN)/python -m vieval_plugin.hosts.lmms_eval.task_files
	$(BIN)/python docs/make_judge_table.py
	$(BIN)/python docs/make_schemas.py

clean:
	rm -rf $(ENV) $(VLLM_ENV) $(KIT_ENV) $(SWIFT_ENV) $(LOWEST_ENV) $(REAL_ENV) build *.egg-info out report
