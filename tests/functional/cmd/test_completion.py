# SPDX-License-Identifier: Apache-2.0
"""The completion of `blazar-sched` in bash, as the guide has it made."""

import subprocess

import pytest

from blazar_sched.cmd import main
from tests import tables

COMPLETE = """
source /dev/stdin
COMP_WORDS=(blazar-sched {words}) COMP_CWORD={count}
_shtab_blazar_sched blazar-sched {last}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope='module')
def script():
    shtab = pytest.importorskip('shtab')
    return shtab.complete(main.parser(), 'bash')


@pytest.mark.parametrize('words, completed', [
    (['man'], {'manager'}), (['db', 'up'], {'upgrade'}),
    pytest.param(['rel'], {'relocations'}, marks=tables.EVERY),
])
def test_bash_completes_commands(script, words, completed):
    code = COMPLETE.format(
        words=' '.join(words), count=len(words), last=words[-1]
    )
    done = subprocess.run(
        ['bash', '-c', code], input=script, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == completed, done.stderr
