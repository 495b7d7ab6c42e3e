"""A few hundred of the fuzzer's cases, and that it would see a hook that breaks."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import unittest
from random import Random
from unittest import mock

import fuzz


@unittest.skipUnless(hasattr(os, "fork"), "fork")
class Fuzz(unittest.TestCase):
    def test_two_hundred_cases_hold(self) -> None:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = fuzz.main(["--cases", "200", "--seed", "7"])
        self.assertRegex(printed.getvalue(), r"(?m)^200 cases, 0 failures, \d+ s\n\Z")
        self.assertEqual(code, 0)

    def test_a_case_depends_on_its_seed_and_number_alone(self) -> None:
        for number in range(20):
            one, two = ([str(fuzz.with_faults(r, fuzz.anything(r))) for r in [Random(f"1:{number}")]] for _ in "ab")
            self.assertEqual(one, two)


@unittest.skipUnless(hasattr(os, "fork"), "fork")
class ItSees(unittest.TestCase):
    """Broken hooks, each found by the checks that every case makes."""

    def failures(self, hook: int, broken: object, kind: str) -> str:
        yard = fuzz.Yard()
        self.addCleanup(shutil.rmtree, yard.folder, True)
        case = next(case for _, name, case in fuzz.KINDS if name == kind)
        module = (yard.recover, yard.coach)[hook]
        with mock.patch.object(fuzz, "KINDS", ((1, kind, case),)), mock.patch.object(module, "main", broken):
            return "\n".join(fuzz.run_case(1, number, yard) for number in range(4))

    def test_a_traceback_another_exit_code_more_than_one_object_and_a_foreign_file_are_failures(self) -> None:
        def raises(_: list[str]) -> int:
            raise RuntimeError("broken")

        def exits(_: list[str]) -> int:
            return 3

        def says_two(_: list[str]) -> int:
            os.write(1, b"{}\n{}\n")
            return 0

        def says_none(_: list[str]) -> int:
            os.write(2, b"Oops\n")
            return 0

        def writes(_: list[str]) -> int:
            with open(os.path.join(os.environ["HOME"], "new"), "w", encoding="utf-8"):
                return 0

        def opens(_: list[str]) -> int:
            with open(os.path.join(os.environ["HOME"], ".claude", "tool-coach.off"), "w", encoding="utf-8") as file:
                os.chmod(file.name, 0o644)
                return 0

        for broken, words in (
            (raises, "RuntimeError: broken"),
            (exits, "exit code 3"),
            (says_two, "Extra data"),
            (says_none, "on stderr: Oops"),
            (writes, "home/new was made"),
            (opens, "has mode 100644"),
        ):
            for hook, kind in enumerate(("recover", "coach")):
                with self.subTest(broken.__name__, kind=kind):
                    self.assertIn(words, self.failures(hook, broken, kind))


if __name__ == "__main__":
    unittest.main()
