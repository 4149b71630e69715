# SPDX-License-Identifier: Apache-2.0
"""Rules and queries of Prometheus, evaluated by promtool."""

from collections.abc import Mapping
from collections.abc import Sequence
import json
import pathlib
import shutil
import subprocess
from typing import Any

import pytest


def check(
    folder: pathlib.Path, rules: pathlib.Path,
    series: Mapping[str, Sequence[str]], expected: Sequence[Mapping[str, Any]],
) -> None:
    """Assert by promtool what queries return.

    :param folder: where the file of the test is written
    :param rules: the file of the rules
    :param series: the values of each series, minute by minute; the time of
        the first one is 0
    :param expected: the entries of `promql_expr_test`
    """
    promtool = shutil.which('promtool')
    if promtool is None:
        pytest.skip('promtool is not installed: it comes with Prometheus')
    path = folder / 'promtool.json'
    path.write_text(json.dumps({
        'rule_files': [str(rules)],
        'evaluation_interval': '1m',
        'tests': [{
            'interval': '1m',
            'input_series': [
                {'series': name, 'values': ' '.join(values)}
                for name, values in series.items()
            ],
            'promql_expr_test': list(expected),
        }],
    }))
    ran = subprocess.run(
        [promtool, 'test', 'rules', path], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
