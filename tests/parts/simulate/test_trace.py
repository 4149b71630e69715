# SPDX-License-Identifier: Apache-2.0
"""Traces are read as documented, and errors name the line."""

from collections import Counter
import random

import pytest

from blazar_sched.domain import exception
from blazar_sched.parts.simulate import trace

OWN = 'arrival,lifetime,vcpus,memory_mb,kind,declared\n'
ALIBABA = 'name,cpu_milli,memory_mib,qos,creation_time,deletion_time\n'


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / 'trace.csv'
        path.write_text(text)
        return str(path)

    return write


def read(path):
    return trace.read_instances(path, random.Random(1))


def test_instances_come_in_the_order_of_their_arrival(written):
    path = written(
        OWN + '50,60,2,1024,unbounded,\n'
        '10,60,1,512,bounded,90\n'
        '20,60,1,512,preemptible,\n'
    )
    assert read(path) == [
        trace.Instance(10, 60, 1, 512, trace.BOUNDED, 90),
        trace.Instance(20, 60, 1, 512, trace.PREEMPTIBLE),
        trace.Instance(50, 60, 2, 1024, trace.UNBOUNDED),
    ]


def test_a_bounded_instance_that_declares_nothing_tells_the_truth(written):
    [found] = read(written(OWN + '0,60,1,512,bounded,\n'))
    assert found.declared == 60


@pytest.mark.parametrize('line, named', [
    ('0,60,none,512,bounded,', 'vcpus'),
    ('0,60,nan,512,bounded,', 'vcpus'),
    ('0,0,1,512,bounded,', 'lifetime'),
    ('-1,60,1,512,bounded,', 'arrival'),
    ('0,60,1,512,eternal,', 'eternal'),
    ('0,60,1,512,unbounded,60', 'declared'),
    ('0,60,1,,bounded', 'memory_mb'),
    ('0,60,1', 'kind'),
])
def test_a_wrong_line_is_named(written, line, named):
    path = written(OWN + '0,60,1,512,bounded,\n' + line + '\n')
    with pytest.raises(exception.InvalidInput, match='line 3') as e:
        read(path)
    assert named in str(e.value)


@pytest.mark.parametrize('text', ['', 'a,b\n1,2\n', OWN])
def test_a_file_that_is_no_trace_is_refused(written, text):
    with pytest.raises(exception.InvalidInput, match=r'trace\.csv'):
        read(written(text))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(exception.InvalidInput, match='none'):
        trace.read_hosts(str(tmp_path / 'none.csv'))


def test_alibabas_nodes_are_hosts(written):
    path = written('sn,cpu_milli,memory_mib,gpu,model\nn1,96000,1024,8,T4\n')
    assert trace.read_hosts(path) == [trace.Host('n1', 96, 1024, gpus=8)]


def test_gpus_of_alibabas_tasks_and_of_the_own_format(written):
    [found] = read(written(
        ALIBABA.replace('qos', 'num_gpu,qos') + 't,1000,512,2,LS,0,60\n'
    ))
    assert found.gpus == 2
    [found, none] = read(written(
        OWN.replace('declared', 'declared,gpus')
        + '0,60,1,512,unbounded,,4\n0,60,1,512,unbounded,,\n'
    ))
    assert (found.gpus, none.gpus) == (4, 0)
    [host] = trace.read_hosts(written(
        'name,vcpus,memory_mb,gpus\nh,8,1024,3\n'
    ))
    assert host.gpus == 3
    assert trace.without_gpus([host]) == [trace.Host('h', 8, 1024)]


def test_alibabas_tasks_declare_what_the_mapping_says(written):
    lines = [
        f't,3152,5600,{qos},100,1100\n' for qos in ('BE', 'LS')
        for _ in range(3000)
    ]
    found = read(written(ALIBABA + ''.join(lines)))
    best_effort = Counter(each.kind for each in found[:3000])
    others = Counter(each.kind for each in found[3000:])
    assert best_effort[trace.UNBOUNDED] == 0
    assert 900 < best_effort[trace.PREEMPTIBLE] < 1100
    assert others[trace.PREEMPTIBLE] == 0
    assert 1400 < others[trace.UNBOUNDED] < 1600
    declared = [each.declared for each in found if each.declared]
    assert 1000 < min(declared) < 1010 and 2990 < max(declared) <= 3001
    assert {(each.lifetime, each.vcpus) for each in found} == {(1000, 4)}


def test_a_repeated_trace_keeps_its_first_copies():
    once = [trace.Instance(at, 5, 1, 1, trace.UNBOUNDED) for at in (0, 10, 90)]
    twice, thrice = (trace.repeat(once, n, 91, seed=7) for n in (2, 3))
    assert trace.repeat(once, 1, 91, seed=7) == once
    assert len(thrice) == 9
    assert not Counter(twice) - Counter(thrice)
    assert all(0 <= each.arrival <= 90 for each in thrice)
    assert thrice == sorted(thrice, key=lambda each: each.arrival)


def test_more_hosts_than_there_are_cannot_be_sampled():
    with pytest.raises(exception.InvalidInput, match='2 hosts'):
        trace.sample([trace.Host('a', 1, 1)], 2, random.Random(1))
