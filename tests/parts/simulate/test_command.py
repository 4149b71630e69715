# SPDX-License-Identifier: Apache-2.0
"""`blazar-sched simulate`, from input files to results."""

import importlib.util
import json
import random

import pytest

from blazar_sched.cmd import main
from blazar_sched.parts.simulate import nova_history
from blazar_sched.parts.simulate import result
from blazar_sched.parts.simulate import trace

DAY = 86400


@pytest.fixture(scope='module')
def files(tmp_path_factory):
    """A trace of five days and 60 hosts."""
    rng = random.Random(4)
    folder = tmp_path_factory.mktemp('trace')
    lines = ['arrival,lifetime,vcpus,memory_mb,kind,declared']
    for _ in range(400):
        kind = rng.choice(trace.KINDS)
        lifetime = int(rng.lognormvariate(9, 1.5)) + 1
        declared = '' if kind == trace.UNBOUNDED else 2 * lifetime
        lines.append(
            f'{rng.randrange(5 * DAY)},{lifetime},{rng.randint(1, 16)},'
            f'{rng.randint(1, 32) * 1024},{kind},{declared}'
        )
    (folder / 'instances.csv').write_text('\n'.join(lines) + '\n')
    hosts = [f'h{n},{rng.choice((32, 64))},262144' for n in range(60)]
    (folder / 'hosts.csv').write_text(
        '\n'.join(['name,vcpus,memory_mb', *hosts]) + '\n'
    )
    return folder


@pytest.fixture
def simulate(files, tmp_path, capsys):
    def run(*more):
        out = tmp_path / 'out.json'
        answer = main.main([
            'simulate', '--instances', str(files / 'instances.csv'),
            '--hosts', str(files / 'hosts.csv'), '--json', str(out), *more,
        ])
        assert answer == 0, capsys.readouterr().err
        return json.loads(out.read_text())

    return run


def by_name(found):
    return {each['policy']: each for each in found['policies']}


def test_48_hosts_for_five_days(simulate, capsys):
    found = simulate('--sample', '48', '--repeat', '4')
    shown = capsys.readouterr().out
    assert (found['hosts'], found['days']) == (48, 5.0)
    policies = by_name(found)
    assert list(policies) == [
        'freepool', 'ours without weighers', 'ours', 'limit',
    ]
    assert all(name.split()[0] in shown for name in policies)
    for each in policies.values():
        assert each['refused_leases'] == []
        assert sum(each['instances'].values()) == 1600
    freepool, ours = policies['freepool'], policies['ours']
    assert ours['utilisation'] > freepool['utilisation']
    assert ours['idle_host_hours'] < freepool['idle_host_hours']
    assert ours['late'] == 0
    assert set(ours['evicted']) <= {trace.PREEMPTIBLE}
    assert (freepool['vcpu_way'], policies['limit']['vcpu_way']) == (0, 1)
    assert max(map(len, shown.splitlines())) <= 100
    for each in policies.values():
        check_classes(each, freepool)


def check_classes(found, pool):
    """Check that the classes make up the sums, and which are worse."""
    worse = []
    for each, of_pool in zip(found['classes'], pool['classes'], strict=True):
        asked, refused = each['asked'], each['refused']
        assert asked == of_pool['asked']
        most = of_pool['refused']['instances']
        if asked['instances'] >= 10 and refused['instances'] > most:
            worse.append({
                key: each[key] for key in ('kind', 'vcpus', 'gpus', 'days')
            })
    assert found['worse'] == worse
    for figure in ('vcpu_hours', 'gib_hours', 'gpu_hours'):
        assert found[f'refused_{figure}'] == pytest.approx(sum(
            each['refused'][figure] for each in found['classes']
        ))


@pytest.mark.more
def test_gpus_of_alibabas_trace(tmp_path, capsys):
    rng = random.Random(4)
    tasks = ['cpu_milli,memory_mib,num_gpu,qos,creation_time,deletion_time']
    for _ in range(400):
        at = rng.randrange(5 * DAY)
        tasks.append(f'4000,8192,1,BE,{at},{at + rng.randint(1, DAY)}')
    nodes = ['sn,cpu_milli,memory_mib,gpu']
    nodes += [f'n{n},96000,262144,{n % 2 * 8}' for n in range(16)]
    for name, lines in (('tasks', tasks), ('nodes', nodes)):
        (tmp_path / f'{name}.csv').write_text('\n'.join(lines) + '\n')

    def run(*more):
        out = tmp_path / 'out.json'
        assert main.main([
            'simulate', '--instances', str(tmp_path / 'tasks.csv'), '--hosts',
            str(tmp_path / 'nodes.csv'), '--json', str(out), *more,
        ]) == 0
        return json.loads(out.read_text()), capsys.readouterr().out

    found, shown = run('--gpus', '--repeat', '2')
    found = by_name(found)
    freepool, ours = found['freepool'], found['ours']
    assert ours['refused_gpu_hours'] < freepool['refused_gpu_hours']
    assert all(each['gpus'] == '≥ 1' for each in ours['classes'])
    assert ours['idle_gpu_hours'] < freepool['idle_gpu_hours']
    assert 'GPU-hours refused' in shown
    found, shown = run()
    assert by_name(found)['ours']['gpu_utilisation'] is None
    assert 'GPU' not in shown
    _, shown = run('--gpus', '--seeds', '2')
    assert shown.count('GPU-h\n') + shown.count('GPU-h ') >= 3


def test_the_same_seed_gives_the_same_and_another_one_does_not(simulate):
    options = '--sample', '12', '--without', 'packing'
    first, again, other = (
        simulate(*options, '--seed', seed) for seed in ('3', '3', '4')
    )
    assert first == again != other
    assert 'ours without packing' in by_name(first)


def test_instances_are_repeated_until_freepool_refuses_so_many(simulate):
    found = simulate('--sample', '6', '--until-refused', '0.5')
    times, left = divmod(found['instances'], 400)
    assert left == 0

    def share(found):
        freepool = by_name(found)['freepool']
        return sum(freepool['refused'].values()) / found['instances']

    assert share(found) >= 0.5
    if times > 1:
        fewer = simulate('--sample', '6', '--repeat', str(times - 1))
        assert share(fewer) < 0.5


@pytest.mark.more
def test_scenes_have_a_line_each(simulate, capsys):
    options = '--sample', '16', '--repeat', '2'
    scenes = simulate(*options, '--seed', '7', '--seeds', '2', '--jobs', '2')
    first, second = scenes['scenes']
    shown = capsys.readouterr().out
    alone = by_name(simulate(*options, '--seed', '8'))
    assert (first['seed'], second['seed']) == (7, 8)
    assert by_name(first) != by_name(second) == {
        name: alone[name] for name in ('freepool', 'ours', 'limit')
    }
    shares = [
        sum(by_name(each)['ours']['refused'].values()) / each['instances']
        for each in (first, second)
    ]
    _, ours = shown.split('ours')
    for share in (*shares, sum(shares) / 2, max(shares)):
        assert f' {share:.2%} ' in ours
    assert ours.index('mean') < ours.index('worst')


def test_missing_nova_is_reported(monkeypatch, capsys):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, 'find_spec',
        lambda name: None if name == 'nova' else find_spec(name),
    )
    command = ['simulate', '--instances', 'i.csv', '--hosts', 'h.csv']
    assert main.main(command) == 2
    assert 'nova' in capsys.readouterr().err


@pytest.fixture
def cloud(monkeypatch, files):
    """A cloud whose past is the trace, on 16 hosts."""
    instances = trace.read_instances(files / 'instances.csv', random.Random(0))
    hosts = trace.read_hosts(files / 'hosts.csv')[:16]
    past = nova_history.History(hosts, instances, len(instances), 2)

    def read(cloud, begin, end, bar):
        assert (cloud, end - begin) == ('mine', 7 * DAY)
        return past

    monkeypatch.setattr(nova_history, 'read_cloud', read)


@pytest.mark.row('F119')
def test_the_past_of_a_cloud_is_saved_and_simulated_again(
    cloud, tmp_path, capsys
):
    out = tmp_path / 'out.json'
    common = '--days', '7', '--json', str(out)
    command = ['simulate', '--os-cloud', 'mine', '--save', str(tmp_path)]
    assert main.main([*command, *common]) == 0
    first = json.loads(out.read_text())
    shown = capsys.readouterr().out
    assert 'mine, last 7 days: 16 hosts, 400 servers' in shown
    assert 'actions of 2 servers cannot be read' in shown
    # Nothing arrives in the last two days, which are simulated all the same.
    assert (first['hosts'], first['days']) == (16, 7.0)

    assert main.main([
        'simulate', '--instances', str(tmp_path / 'instances.csv'),
        '--hosts', str(tmp_path / 'hosts.csv'), *common,
    ]) == 0
    assert json.loads(out.read_text()) == first
    assert main.main(['simulate', '--os-cloud', 'mine', *common]) == 0
    assert json.loads(out.read_text()) == first


def test_only_so_many_days_of_a_trace_are_simulated(simulate):
    options = '--sample', '48', '--lease-share', '0.1'
    whole, part = simulate(*options), simulate(*options, '--days', '2')
    assert (whole['days'], part['days']) == (5.0, 2.0)
    assert 0 < part['instances'] < whole['instances']


@pytest.mark.parametrize('options, told', [
    ([], '--instances and --hosts'),
    (['--hosts', 'h.csv'], '--instances and --hosts'),
    (['--os-cloud', 'mine', '--hosts', 'h.csv'], '--os-cloud'),
    (
        ['--instances', 'i.csv', '--hosts', 'h.csv', '--save', '.'],
        '--save requires --os-cloud',
    ),
])
def test_either_files_or_a_cloud(capsys, options, told):
    assert main.main(['simulate', *options]) == 2
    assert told in capsys.readouterr().err


def test_an_unknown_cloud_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main.main(['simulate', '--os-cloud', 'nowhere']) == 1
    assert '--os-cloud nowhere cannot be read: Cloud nowhere was not' in (
        capsys.readouterr().err
    )


def test_a_cloud_without_servers_is_told(capsys, monkeypatch):
    empty = nova_history.History([trace.Host('h', 1, 1)], [], 0, 0)
    monkeypatch.setattr(nova_history, 'read_cloud', lambda *_: empty)
    assert main.main(['simulate', '--os-cloud', 'mine']) == 1
    assert '--os-cloud mine: nothing to simulate' in capsys.readouterr().err


def test_a_wrong_line_is_told_with_its_number(tmp_path, files, capsys):
    path = tmp_path / 'hosts.csv'
    path.write_text('name,vcpus,memory_mb\nh0,8,1024\nh1,many,1024\n')
    answer = main.main([
        'simulate', '--instances', str(files / 'instances.csv'),
        '--hosts', str(path),
    ])
    assert answer == 1
    assert 'hosts.csv, line 3: vcpus' in capsys.readouterr().err


def test_a_folder_that_is_missing_is_told_of_before_all_is_played(
    tmp_path, capsys
):
    with pytest.raises(SystemExit) as e:
        main.main([
            'simulate', '--instances', 'i.csv', '--hosts', 'h.csv',
            '--json', str(tmp_path / 'none' / 'out.json'),
        ])
    assert e.value.code == 2
    assert 'none' in capsys.readouterr().err


def test_help_tells_of_each_option(capsys):
    with pytest.raises(SystemExit) as e:
        main.main(['simulate', '--help'])
    assert e.value.code == 0
    shown = capsys.readouterr().out
    for option in ('--until-refused', '--without', '--seeds'):
        assert option in shown


@pytest.mark.row('F36')
def test_the_headroom_of_the_best_policy_is_suggested(simulate, capsys):
    found = simulate('--sample', '8', '--suggest')
    keeping = [
        each for each in found['policies']
        if not each['refused_leases'] and not each['late']
    ]
    assert len(found['policies']) == 5
    fewest = min(each['refused_vcpu_hours'] for each in keeping)
    # More headroom is better if it costs nothing.
    *_, best = [
        each for each in keeping if each['refused_vcpu_hours'] == fewest
    ]
    shown = capsys.readouterr().out
    assert f'With a headroom of {best["policy"]}, every lease' in shown
    assert '[manager]\nunbounded = relocate\n' in shown


def test_nothing_is_suggested_if_no_policy_keeps_every_lease():
    refusing = result.Result('a', refused_leases=['lease'])
    late = result.Result('b', late=1)
    assert result.best([refusing, late]) is None
    kept = result.Result('c')
    assert result.best([kept, refusing, late]) is kept
