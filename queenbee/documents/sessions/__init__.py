"""Team sessions: a folder with a team's tasks and roles. docs/sessions.md."""

from __future__ import annotations

from queenbee.documents.sessions.folder import SessionFolder as SessionFolder
from queenbee.documents.sessions.folder import read_session_folder as read_session_folder
from queenbee.documents.sessions.folder import write_session_folder as write_session_folder
from queenbee.documents.sessions.session import Role as Role
from queenbee.documents.sessions.session import Session as Session
from queenbee.documents.sessions.session import read_session as read_session
from queenbee.documents.sessions.session import session_findings as session_findings
from queenbee.documents.sessions.session import validate_session as validate_session
from queenbee.documents.sessions.session_import import InvalidGraph as InvalidGraph
from queenbee.documents.sessions.session_import import import_session as import_session
from queenbee.documents.sessions.skeleton import Skeleton as Skeleton
from queenbee.documents.sessions.skeleton import session_skeleton as session_skeleton
from queenbee.documents.sessions.task_graph import Pipeline as Pipeline
from queenbee.documents.sessions.task_graph import Task as Task
from queenbee.documents.sessions.task_graph import render_pipeline as render_pipeline
