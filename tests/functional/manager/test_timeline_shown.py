# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched timeline`."""

import json

import pytest

from blazar_sched.cmd import main
from blazar_sched.cmd import timeline as command


def test_json_and_pictures(world, conf, capsys, tmp_path):
    world.add_host('a', rack='[red]7')
    file = tmp_path / 'blazar-sched.conf'
    file.write_text(
        f'[database]\nconnection = {conf.database.connection}\n'
    )
    run = ['--config-file', str(file), 'timeline']
    assert main.main([*run, '--json', '--days', '1']) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row['name'] for row in found['rows']] == ['a']
    assert found['end'] - found['start'] == 86400
    assert main.main([*run, '--group-by', '$rack', '--width', '60']) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1].startswith('[red]7')
    assert max(map(len, text.splitlines())) <= 60
    assert main.main([*run, '--group-by', 'flavor']) == 1
    assert 'group_by' in capsys.readouterr().err


@pytest.mark.parametrize('free, shown', [
    (1, ' '), (0.99, '▁'), (0.5, '▄'), (0.01, '▇'), (0, '█'),
])
def test_a_picture_shows_anything_that_is_taken(free, shown):
    row = {'available': True, 'free': [free]}
    assert command.picture(row) == shown
    assert command.picture({**row, 'available': False}) == 'x'


@pytest.mark.parametrize('wrong', [
    ['--days', '0'], ['--days', 'x'], ['--width', '3'], ['--days', 'nan'],
])
def test_an_option_that_cannot_be_used(wrong, capsys):
    with pytest.raises(SystemExit):
        main.main(['timeline', *wrong])
    assert wrong[0] in capsys.readouterr().err
