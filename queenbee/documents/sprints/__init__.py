"""Sprint beads: issues that carry a sprint's team, history and verdict. docs/sprint-beads.md."""

from __future__ import annotations

from queenbee.documents.sprints.executions import InvalidRecord as InvalidRecord
from queenbee.documents.sprints.executions import NoAttemptLeft as NoAttemptLeft
from queenbee.documents.sprints.executions import attempts_left as attempts_left
from queenbee.documents.sprints.executions import feedback as feedback
from queenbee.documents.sprints.executions import next_step as next_step
from queenbee.documents.sprints.executions import record_dev_execution as record_dev_execution
from queenbee.documents.sprints.executions import record_pull_request as record_pull_request
from queenbee.documents.sprints.executions import record_qa_execution as record_qa_execution
from queenbee.documents.sprints.executions import record_scrum_result as record_scrum_result
from queenbee.documents.sprints.executions import sprint_verdict as sprint_verdict
from queenbee.documents.sprints.sprint_bead import SprintBead as SprintBead
from queenbee.documents.sprints.sprint_bead import check_bead as check_bead
from queenbee.documents.sprints.sprint_bead import group_by_team as group_by_team
from queenbee.documents.sprints.sprint_bead import is_sprint_bead as is_sprint_bead
from queenbee.documents.sprints.sprint_bead import sprint_schema as sprint_schema
from queenbee.documents.sprints.sprint_bead import team_of as team_of
