"""What checks and agents do not get of the environment: tokens of code hosts, and the ssh-agent.

Their commands may come from a clone, and what a clone says cannot give them a token: only the git
config of this machine can, with `git config queenbee.env 'GH_TOKEN SSH_AUTH_SOCK'`.
"""

from __future__ import annotations

from queenbee.store.git_trees import config_files, config_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = frozenset({
    "GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_API_TOKEN", "GITHUB_PAT", "HOMEBREW_GITHUB_API_TOKEN",
    "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "GITLAB_TOKEN", "GITLAB_ACCESS_TOKEN", "GITLAB_PRIVATE_TOKEN", "OAUTH_TOKEN", "CI_JOB_TOKEN",
    "GITEA_TOKEN", "GITEA_SERVER_TOKEN", "TEA_TOKEN", "FORGEJO_TOKEN", "CODEBERG_TOKEN",
    "BITBUCKET_TOKEN", "BITBUCKET_ACCESS_TOKEN", "BITBUCKET_APP_PASSWORD", "BITBUCKET_API_TOKEN",
    "AZURE_DEVOPS_EXT_PAT", "SYSTEM_ACCESSTOKEN",
    "SSH_AUTH_SOCK", "SSH_AGENT_PID",
})  # fmt: skip


def without_tokens(env: Mapping[str, str], common_dir: str | None) -> dict[str, str]:
    """Returns an environment without the variables above, except those that `queenbee.env` in the
    git config of the repository, the user or the machine names.
    """
    kept: list[str] = []
    for path in config_files(common_dir, env):
        if (said := config_value(path, "queenbee", "env")) is not None:
            kept = said.replace(",", " ").split()
            break
    return {name: value for name, value in env.items() if name not in NAMES or name in kept}
