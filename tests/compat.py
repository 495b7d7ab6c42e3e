"""Run the end-to-end tests on every pinned version of the client, and print which of them does what.

`python3 tests/compat.py [VERSION …]`: the clients are fetched one after the other, the tests of tests/e2e run on all of
them, and a Markdown table comes out: one row for each test class, named by its docstring. "yes": each of its tests that
fits the version passed; "no": one failed; "-": the client lacks what they need. Exit code 1 if there is a "no".
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import unittest
from pathlib import Path
from typing import Any

E2E = Path(__file__).resolve().parent / "e2e"
MODULES = ("test_recover", "test_coach", "test_install")


class Outcomes(unittest.TestResult):
    """The outcome of each test on each version, by what its class shows."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, dict[str, set[str]]] = {}

    def note(self, test: unittest.TestCase, outcome: str) -> None:
        """Note one test's outcome on the version it ran on; "every" if it ended before there was one."""
        case = getattr(test, "test_case", test)
        shown = str(type(case).__doc__).split("\n", maxsplit=1)[0]
        version = str(getattr(test, "params", {}).get("version", "every"))
        self.found.setdefault(shown, {}).setdefault(version, set()).add(outcome)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        print(test.id(), file=sys.stderr, flush=True)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        self.note(subtest, "no" if err else "yes")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.note(test, "-")

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        super().addError(test, err)
        self.note(test, "no")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        super().addFailure(test, err)
        self.note(test, "no")

    def table(self, versions: tuple[str, ...]) -> str:
        """The outcomes as a Markdown table, a row for each class and a column for each version."""
        lines = [["", *versions], ["---", *(":-:" for _ in versions)]]
        for shown, by_version in self.found.items():
            seen = [by_version.get(version, set()) | by_version.get("every", set()) for version in versions]
            lines.append([shown, *(next((word for word in ("no", "yes", "-") if word in one), "") for one in seen)])
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def is_test_class(found: object) -> bool:
    """Whether something in a test module is a class of tests."""
    return isinstance(found, type) and issubclass(found, unittest.TestCase)


def main(versions: tuple[str, ...]) -> int:
    """Run everything on these versions, or on all that are pinned; return the exit code."""
    sys.path.insert(0, str(E2E))
    import harness

    versions = versions or harness.VERSIONS
    for version in versions:
        harness.client_command(version)
    os.environ["CLIENT_VERSIONS"] = " ".join(versions)
    outcomes = Outcomes()
    classes = [one for name in MODULES for one in vars(importlib.import_module(name)).values() if is_test_class(one)]
    unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, classes)).run(outcomes)
    for test, trace in outcomes.failures + outcomes.errors:
        print(f"\n{test}\n{trace}", file=sys.stderr)
    print(f"{outcomes.testsRun} tests on each of {len(versions)} clients, {time.strftime('%Y-%m-%d')}:\n")
    print(outcomes.table(versions))
    return 0 if outcomes.wasSuccessful() else 1


if __name__ == "__main__":
    raise SystemExit(main(tuple(sys.argv[1:])))
