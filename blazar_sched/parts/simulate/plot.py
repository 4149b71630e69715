# SPDX-License-Identifier: Apache-2.0
"""Results as a picture; the only module that needs matplotlib."""

from collections.abc import Sequence

from matplotlib import figure

from blazar_sched.parts.simulate import result


def save(results: Sequence[result.Result], path: str) -> None:
    """Draw days and totals as PNG, with a colour for each policy.

    :raises OSError: if the file cannot be written
    """
    drawn = figure.Figure(figsize=(10, 8), layout='constrained')
    used, idle, refused = drawn.subplots(3)
    for each in results:
        used.plot(
            [100 * share for share in each.utilisation_by_day],
            label=each.policy,
        )
        idle.plot(each.idle_by_day)
    used.set(title='vCPUs in use', ylabel='%', xlabel='day')
    drawn.legend(loc='outside upper center', ncols=len(results))
    idle.set(
        title='Reserved but idle', ylabel='host-hours a day', xlabel='day'
    )
    refused.barh(
        [each.policy for each in results],
        [100 * each.refused_share for each in results],
        color=[f'C{number}' for number in range(len(results))],
    )
    refused.set(title='Instances refused', xlabel='%')
    refused.invert_yaxis()
    drawn.savefig(path, format='png')
