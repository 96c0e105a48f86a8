# make train      sets up .venv if need be, trains Connect Four for 15 minutes and evaluates it
# make test       sets up .venv if need be, then lint, types and all quick tests
# make test-all   the slow tests as well
# make bench      speed beside peers, in one run
# make setup      only .venv (another interpreter: make setup PYTHON=/path/to/python3.12)

CHECKED := benchmarks docs envs models selfplay tests setup.py selfplay_environments.py
PYTEST := .venv/bin/python -m pytest tests envs models selfplay --doctest-modules -n 2 --dist worksteal
READY := .venv/.ready

.PHONY: setup train test test-all lint bench clean

setup: $(READY)

# torch first and by itself: with the constraint pip takes the one build that needs no gigabytes of GPU libraries.
$(READY): pyproject.toml constraints.txt setup.py selfplay_environments.pth
	@python="$(PYTHON)"; \
	if [ -z "$$python" ]; then \
	  for name in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	    if $$name -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	      python=$$name; break; \
	    fi; \
	  done; \
	fi; \
	if [ -z "$$python" ]; then echo "make: Python 3.11 or newer with its venv module is needed" >&2; exit 2; fi; \
	echo "setting up .venv with $$($$python --version)"; \
	$$python -m venv .venv
	.venv/bin/python -m pip install --quiet torch==2.13.0 -c constraints.txt
	.venv/bin/python -m pip install --quiet -e '.[dev,openvino,onnx]' -c constraints.txt
	@touch $(READY)

train: $(READY)
	.venv/bin/selfplay train connect_four --minutes 15
	@echo "selfplay and tensorboard are in .venv/bin; for a shell that finds them: . .venv/bin/activate"

test: $(READY)
	@$(MAKE) --no-print-directory lint; lint=$$?; $(PYTEST) -m 'not slow'; tests=$$?; \
	if [ $$lint -ne 0 ]; then echo "make: lint failed, see above" >&2; fi; [ $$lint -eq 0 ] && [ $$tests -eq 0 ]

test-all: $(READY)
	@$(MAKE) --no-print-directory lint; lint=$$?; $(PYTEST); tests=$$?; \
	if [ $$lint -ne 0 ]; then echo "make: lint failed, see above" >&2; fi; [ $$lint -eq 0 ] && [ $$tests -eq 0 ]

lint: $(READY)
	.venv/bin/python -m ruff check $(CHECKED)
	.venv/bin/python -m ruff format --check $(CHECKED)
	.venv/bin/python -m mypy

bench: $(READY)
	.venv/bin/selfplay bench rules

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
