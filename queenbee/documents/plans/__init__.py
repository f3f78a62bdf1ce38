"""Plans: Markdown with phases and sprints, checked, annotated and imported as issues."""

from __future__ import annotations

from queenbee.documents.plans.plan import Phase as Phase
from queenbee.documents.plans.plan import Plan as Plan
from queenbee.documents.plans.plan import Sprint as Sprint
from queenbee.documents.plans.plan import parse_plan as parse_plan
from queenbee.documents.plans.plan_check import check_plan as check_plan
from queenbee.documents.plans.plan_graph import plan_dependencies as plan_dependencies
from queenbee.documents.plans.plan_graph import render_plan as render_plan
from queenbee.documents.plans.plan_import import InvalidPlan as InvalidPlan
from queenbee.documents.plans.plan_import import import_plan as import_plan
from queenbee.documents.plans.rows import PlanSetting as PlanSetting
from queenbee.documents.plans.source_text import annotate_file as annotate_file
from queenbee.documents.plans.source_text import annotate_plan as annotate_plan
from queenbee.documents.plans.source_text import read_markdown as read_markdown
