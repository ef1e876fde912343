# Everything a newcomer needs: `make demo` and `make test`. The environment is made once and reused.
PYTHON ?= python3
ENV := .venv
OUT ?= out
BIN := $(ENV)/bin

.PHONY: demo test lint clean

# tokens of what an environment was made from: a second call is quick unless setup.cfg changed
$(ENV)/ready: setup.cfg pyproject.toml
	@echo "== making an environment in $(ENV) (lmms-eval brings PyTorch, some 7 GB: a few minutes the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(ENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[lmms-eval,http,metrics,video,test]"
	@touch $@

demo: $(ENV)/ready
	@echo "== judging drawn images with known defects (task group vieval_demo, synthetic ratings)"
	rm -rf $(OUT)/demo
	$(BIN)/lmms-eval --model vieval_measure --tasks vieval_demo --output_path $(OUT)/demo --log_samples > $(OUT)-demo.log 2>&1 \
	  || { tail -n 20 $(OUT)-demo.log; exit 1; }
	@mkdir -p $(OUT) && mv $(OUT)-demo.log $(OUT)/demo.log
	$(BIN)/vieval report $(OUT)/demo --out $(OUT)/demo-report
	@sed -n '/^### Over all tasks/,/^### By task/p' $(OUT)/demo-report/report.md | sed '$$d'
	@echo "== report: $(OUT)/demo-report/report.md   log of the run: $(OUT)/demo.log"

test: $(ENV)/ready lint
	@echo "== tests (those on public data need ../shared/data beside this checkout)"
	$(BIN)/python -m pytest -rs

# the type checker sees the package as installed, where judges/ is vieval_plugin.judges
lint: $(ENV)/ready
	@echo "== ruff and mypy"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	rm -rf build $(ENV)/typed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(ENV)/typed .
	cd $(ENV)/typed && MYPYPATH=. ../bin/mypy --config-file ../../setup.cfg --python-executable ../bin/python -p vieval_plugin
	rm -rf build

clean:
	rm -rf $(ENV) build *.egg-info out report
