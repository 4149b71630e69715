# SPDX-License-Identifier: Apache-2.0
"""The Containerfile: the steps of the service, run in order in a folder."""

import os
import re
import subprocess

import pytest

from tests.packaging import source

TEXT = (source.ROOT / 'Containerfile').read_text()
STAGES = re.findall(r'^FROM \S+ AS (\S+)\n((?:(?!FROM).*\n?)*)', TEXT, re.M)


def steps(stage):
    """Return the commands of a stage, without those of the system."""
    return [
        command for command in re.findall(r'^RUN (.*)$', stage, re.M)
        if not command.startswith(('apt-get', 'useradd'))
    ]


@pytest.mark.row('F102')
def test_the_steps_of_the_service_give_its_commands(tmp_path):
    stages = dict(STAGES)
    source.copy(tmp_path / 'src')
    for command in steps(stages['build']):
        for path in '/src', '/opt/blazar-sched':
            command = command.replace(path, f'{tmp_path}{path}')
        subprocess.run(
            ['sh', '-ec', command], check=True, timeout=source.PATIENCE,
            env=source.environment(PIP_DISABLE_PIP_VERSION_CHECK='1'),
        )
    [program] = re.findall(r'ENTRYPOINT \["(.*)"\]', stages['service'])
    done = subprocess.run(
        [f'{tmp_path}{program}', 'status'], capture_output=True, text=True,
        env={'PATH': os.defpath}, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert 'compiled' in done.stdout


def test_each_copy_is_of_an_earlier_stage_and_of_its_path():
    seen = {}
    for name, body in STAGES:
        for stage, path in re.findall(r'COPY --from=(\S+) (\S+)', body):
            assert path in seen[stage]
        seen[name] = body


def test_each_image_ends_as_a_user_without_rights():
    for name in 'service', 'nova':
        [*_, user] = re.findall(r'^USER (\S+)', dict(STAGES)[name], re.M)
        assert user != 'root'
