# SPDX-License-Identifier: Apache-2.0
"""Notify: what happens to the leases of a project is told to its receivers.

A webhook of a project has the notifications posted to a URL, or e-mailed. An
action of a reservation sends an e-mail to the creator of the lease, or a
request to the operator's service.
"""
