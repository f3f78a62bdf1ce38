"""The engine of checks: runs commands, scripts and file checks, and keeps the evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee._lazy import exports

if TYPE_CHECKING:
    from queenbee.checks.check import Check as Check
    from queenbee.checks.check import CheckResult as CheckResult
    from queenbee.checks.check import Command as Command
    from queenbee.checks.check import ContentMatch as ContentMatch
    from queenbee.checks.check import Expectation as Expectation
    from queenbee.checks.check import FileExists as FileExists
    from queenbee.checks.check import Pattern as Pattern
    from queenbee.checks.check import Script as Script
    from queenbee.checks.check import describe as describe
    from queenbee.checks.check import verdict as verdict
    from queenbee.checks.consent import Consent as Consent
    from queenbee.checks.executing import Progress as Progress
    from queenbee.checks.executing import run_checks as run_checks
    from queenbee.checks.runner import CheckRunner as CheckRunner
    from queenbee.checks.runner import ChecksInterrupted as ChecksInterrupted
    from queenbee.checks.verification import VerificationRecord as VerificationRecord

exports(
    __name__,
    {
        "check": "Check CheckResult Command ContentMatch Expectation FileExists Pattern "
        "Script describe verdict",
        "consent": "Consent",
        "executing": "Progress run_checks",
        "runner": "CheckRunner ChecksInterrupted",
        "verification": "VerificationRecord",
    },
)
