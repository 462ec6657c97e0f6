"""The view of the filters: the rules that a document fails."""

from __future__ import annotations

from factory.explain.stages.stage import Section
from factory.explain.stages.verdicts import VerdictView
from factory.lake.names import FILTERS

VIEW = VerdictView(
    stage=FILTERS,
    namespace="filtered",
    outcome="filtered",
    section=Section("rejections", "Rejections by rule (a document can fail several)"),
)
