# SPDX-License-Identifier: Apache-2.0
"""The number of examples of the property tests.

``HYPOTHESIS_PROFILE=long`` is for a run over night. Hypothesis stores every
example of a run, about half a megabyte for each.
"""

import os

import hypothesis

hypothesis.settings.register_profile(
    'short', max_examples=100, stateful_step_count=25, deadline=None
)
hypothesis.settings.register_profile(
    'long', max_examples=3000, stateful_step_count=50, deadline=None
)
hypothesis.settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'short'))
