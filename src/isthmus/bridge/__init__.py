"""The artifact: a fitted map with its spaces, its measured honesty, and its hash."""

from isthmus.bridge.bridge import Bridge
from isthmus.bridge.calibration import Calibration
from isthmus.bridge.provenance import Provenance
from isthmus.bridge.scope import Scope, ScopeReport
from isthmus.bridge.verdict import Verdict

__all__ = ["Bridge", "Calibration", "Provenance", "Scope", "ScopeReport", "Verdict"]
