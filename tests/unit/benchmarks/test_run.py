# SPDX-License-Identifier: Apache-2.0
"""The benchmark runs, and its results equal those of brute force."""

import json
import pathlib
import subprocess
import sys

import pytest

from blazar_sched import ext

pytestmark = pytest.mark.more

ROOT = pathlib.Path(__file__).parents[3]

pytest.importorskip('numpy')


@pytest.mark.skipif(not ext.is_compiled(), reason='is about the compiled one')
def test_small_benchmark_equals_brute_force(tmp_path):
    kept = tmp_path / 'results.json'
    done = subprocess.run(
        [
            sys.executable, '-m', 'benchmarks', '--json', str(kept),
            '--hosts', '50', '--allocations', '5', '--budget', '0.001',
            '--parts', 'index,scale,dense,churn,ledger',
        ],
        cwd=ROOT, check=False, capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(kept.read_text())['results']
    assert all(own['value'] > 0 for own in results if own['unit'] == 's')
    subjects = {own['subject'] for own in results}
    assert {'index', 'index, rows only', 'numpy CSR'} <= subjects
    assert 'targets met' in done.stdout
