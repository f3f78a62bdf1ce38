"""What checks, agents and hooks do not get of the environment: tokens of code hosts, and the
ssh-agent; and the check of a landing nothing that changes what it runs.

Their commands may come from a clone, and what a clone says cannot give them a token: only the git
config of this machine can, with `git config queenbee.env 'GH_TOKEN SSH_AUTH_SOCK'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from queenbee.store.git_trees import config_files, config_value, owners_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

AGENT = frozenset({"SSH_AUTH_SOCK", "SSH_AGENT_PID"})
NAMES = AGENT | frozenset({
    "GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_API_TOKEN", "GITHUB_PAT", "HOMEBREW_GITHUB_API_TOKEN",
    "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "GITLAB_PRIVATE_TOKEN", "OAUTH_TOKEN", "CI_JOB_TOKEN",
    "GITEA_TOKEN", "GITEA_SERVER_TOKEN", "TEA_TOKEN", "FORGEJO_TOKEN", "CODEBERG_TOKEN",
    "BITBUCKET_TOKEN", "BITBUCKET_ACCESS_TOKEN", "BITBUCKET_APP_PASSWORD", "BITBUCKET_API_TOKEN",
    "AZURE_DEVOPS_EXT_PAT", "SYSTEM_ACCESSTOKEN",
})  # fmt: skip


RUNNERS = frozenset({
    "BASHOPTS", "BASH_ENV", "CDPATH", "ENV", "GLOBIGNORE", "GNUMAKEFLAGS", "GOFLAGS",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "MAKEFILES", "MAKEFLAGS", "MAKEOVERRIDES",
    "MAVEN_ARGS", "MFLAGS", "NODE_OPTIONS", "PERL5OPT", "PS4", "PYTEST_ADDOPTS", "PYTEST_PLUGINS",
    "RUBYOPT", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "SHELLOPTS", "_JAVA_OPTIONS",
})  # fmt: skip
"""What hands options or code to a shell, `make` or a test runner: `MAKEFLAGS=n` lets `make test`
pass without a test. The check of a landing must mean the same whoever lands.
"""


def without_tokens(env: Mapping[str, str], common_dir: str | None) -> dict[str, str]:
    """Returns an environment without the variables above, except those that `queenbee.env` in the
    git config of the repository, the user or the machine names.
    """
    kept = _kept(env, common_dir)
    return {name: value for name, value in env.items() if name not in NAMES or name in kept}


def for_a_landing(env: Mapping[str, str], common_dir: str | None) -> dict[str, str]:
    """Returns the same without those of `RUNNERS`, and without settings of git."""
    kept = _kept(env, common_dir)
    return {
        name: value
        for name, value in without_tokens(env, common_dir).items()
        if name in kept or not (name in RUNNERS or _is_alike(name))
    }


def _is_alike(name: str) -> bool:
    """Returns whether a variable does the same under a name of many, or sets what git does."""
    is_wrapper = name.startswith("CARGO_TARGET_") and name.endswith("_RUNNER")
    begins = name.startswith(("GIT_CONFIG", "BASH_FUNC_"))
    return is_wrapper or begins or name.lower().startswith("npm_config_")


def _kept(env: Mapping[str, str], common_dir: str | None) -> list[str]:
    for path in config_files(common_dir, owners_environment(env)):
        if (said := config_value(path, "queenbee", "env")) is not None:
            return said.replace(",", " ").split()
    return []
