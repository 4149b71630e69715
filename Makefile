# SPDX-License-Identifier: Apache-2.0
# A door to tox: every target is a tox environment of the same name.

PYTHON ?= python3
TOX := .venv/bin/tox

TARGETS := bench demo docs genconfig genpolicy lint plain test test-cloud \
	test-packaging test-services test-tempest

.PHONY: $(TARGETS) clean

$(TARGETS): $(TOX)
	$(TOX) run -q -e $@

$(TOX):
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check "tox>=4.18"

clean:
	rm -rf .tox .venv build dist doc/build
