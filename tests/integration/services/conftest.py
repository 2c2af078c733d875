# SPDX-License-Identifier: Apache-2.0
import pytest

from payfact_stack import Servers


@pytest.fixture(scope="session")
def servers():
    with Servers() as started:
        yield started


def pytest_configure(config):
    config.addinivalue_line("markers", "own(**options): how the Stack of this test alone is made")
