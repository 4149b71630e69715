# SPDX-License-Identifier: Apache-2.0
"""What tests of options have in common."""

import pytest

from blazar_sched.conf import service


@pytest.fixture
def load(tmp_path):
    """load(option, value, …) -> a file of the option of [manager], read."""

    def load(option, *values):
        path = tmp_path / 'blazar-sched.conf'
        lines = [f'{option} = {each}' for each in values]
        path.write_text('\n'.join(['[manager]', *lines]))
        return service.load(['--config-file', str(path)])

    return load
