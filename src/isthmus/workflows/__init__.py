"""The verbs: what a user does, one function each."""

from isthmus.workflows._convert_plan import ConversionPlan, plan_conversion
from isthmus.workflows._convert_status import ConversionStatus, conversion_status
from isthmus.workflows._convert_switch import Switch, cut_over, roll_back
from isthmus.workflows._convert_verify import Verification, verify_conversion
from isthmus.workflows._evaluating import OF_QUERIES
from isthmus.workflows.apply_bridge import Applied, apply_bridge
from isthmus.workflows.canary import (
    CanaryCheck,
    add_canaries,
    check_canaries,
    compare_canaries,
)
from isthmus.workflows.convert import Converted, convert
from isthmus.workflows.demo import DemoResult, demo
from isthmus.workflows.doctor import Diagnosis, diagnose
from isthmus.workflows.drift import DriftReport, drift_between
from isthmus.workflows.evaluate_bridge import Evaluation, evaluate_bridge
from isthmus.workflows.find_links import FoundLinks, find_links
from isthmus.workflows.fit_bridge import fit_bridge
from isthmus.workflows.fit_federation import FittedBridge, FittedFederation, fit_federation
from isthmus.workflows.inspect import Inspection, PairInspection, SetInspection, inspect
from isthmus.workflows.integrate import Integrated, integrate
from isthmus.workflows.record_space import Recorded, record_space
from isthmus.workflows.search import search
from isthmus.workflows.store_files import Exported, Imported, export_store, import_file
from isthmus.workflows.suggest_pairs import suggest_pairs

__all__ = [
    "OF_QUERIES",
    "Applied",
    "CanaryCheck",
    "ConversionPlan",
    "ConversionStatus",
    "Converted",
    "DemoResult",
    "Diagnosis",
    "DriftReport",
    "Evaluation",
    "Exported",
    "FittedBridge",
    "FittedFederation",
    "FoundLinks",
    "Imported",
    "Inspection",
    "Integrated",
    "PairInspection",
    "Recorded",
    "SetInspection",
    "Switch",
    "Verification",
    "add_canaries",
    "apply_bridge",
    "check_canaries",
    "compare_canaries",
    "conversion_status",
    "convert",
    "cut_over",
    "demo",
    "diagnose",
    "drift_between",
    "evaluate_bridge",
    "export_store",
    "find_links",
    "fit_bridge",
    "fit_federation",
    "import_file",
    "inspect",
    "integrate",
    "plan_conversion",
    "record_space",
    "roll_back",
    "search",
    "suggest_pairs",
    "verify_conversion",
]
