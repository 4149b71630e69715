# SPDX-License-Identifier: Apache-2.0
# Every target is an environment of tox, with the same name.

PYTHON ?= python3
TOX := .venv/bin/tox

TARGETS := bench demo docs genclient genconfig genpolicy lint lowest plain test \
	test-nova test-packaging test-programs test-tempest
# These have the environment of `test`: tox makes one for each name.
IN_TEST := test-cloud test-ha test-more test-page test-services

.PHONY: $(TARGETS) $(IN_TEST) clean

# ARGS are for the command of the target.
ARGUMENTS = $(if $(ARGS),-- $(ARGS))

$(TARGETS): $(TOX)
	$(TOX) run -q -e $@ $(ARGUMENTS)

$(IN_TEST): $(TOX)
	$(TOX) run -q -e test \
		--override 'testenv:test.commands={[testenv:$@]commands}' \
		$(ARGUMENTS)

$(TOX):
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check "tox>=4.18"

clean:
	rm -rf .tox .venv build dist doc/build
