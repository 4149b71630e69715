# SPDX-License-Identifier: Apache-2.0
"""The parts of the service, each in a package: see `service.parts`."""
