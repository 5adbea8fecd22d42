"""The faults of tools/mutations.py name texts and tests that exist, so that the script can be run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("mutations", ROOT / "tools" / "mutations.py")
mutations = importlib.util.module_from_spec(spec)
sys.modules["mutations"] = mutations
spec.loader.exec_module(mutations)


@pytest.mark.parametrize("fault", mutations.FAULTS, ids=lambda fault: f"{fault.file}: {fault.old[:30]}")
def test_a_fault_can_be_put_into_the_code(fault):
    text = (ROOT / "src" / "fishergraph" / fault.file).read_text(encoding="utf-8")
    assert text.count(fault.old) == 1
    assert fault.new not in ("", fault.old)
    for tests in fault.tests.split():
        assert (ROOT / "tests" / tests.partition("::")[0]).exists(), tests


def test_there_are_thirty():
    assert len(mutations.FAULTS) == 30
