# SPDX-License-Identifier: Apache-2.0
"""Simulation of a trace in virtual time, by the real filters and weighers.

The placement of leases is the real placement, too. Only `cloud` and the
modules that it imports need Nova.
"""
