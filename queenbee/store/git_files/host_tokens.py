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
    "BASH_ENV", "CDPATH", "ENV", "GLOBIGNORE", "GOENV", "GOWORK", "MAKEFILES", "MAKEOVERRIDES",
    "MAVEN_CONFIG", "PHPRC", "PHP_INI_SCAN_DIR", "PS4", "PYTEST_DISABLE_PLUGIN_AUTOLOAD",
    "PYTEST_PLUGINS", "PYTHONOPTIMIZE", "RUSTC", "RUSTDOC", "SPEC", "TEST", "TESTBRIDGE_TEST_ONLY",
    "UV_ENV_FILE", "ZDOTDIR",
})  # fmt: skip
"""What hands options or code to a shell, `make` or a test runner: `MAKEFLAGS=n` lets `make test`
pass without a test. The check of a landing must mean the same whoever lands.
"""
BEGINS = (
    *("BASH_FUNC_", "CARGO_ALIAS_", "CARGO_BUILD_", "CARGO_PROFILE_", "GIT_CONFIG", "GTEST_"),
    *("HARNESS_", "JUST_", "NEXTEST_", "NOX", "NPM_CONFIG_", "ORG_GRADLE_PROJECT_", "PNPM_CONFIG_"),
    *("TOX", "VSTEST", "YARN_"),
)
ENDS = (
    *("ARGS", "DRY_RUN", "FILTER", "FLAGS", "HOOKS", "OPT", "OPTIONS", "OPTS", "_RUNNER"),
    "WRAPPER",
)
"""What others of them are called, in any case: most programs name theirs like this."""
_COMPILERS = frozenset({"CFLAGS", "CPPFLAGS", "CXXFLAGS", "LDFLAGS"})
"""A build may need these to find its libraries."""


def without_tokens(env: Mapping[str, str], common_dir: str | None) -> dict[str, str]:
    """Returns an environment without the variables above, except those that `queenbee.env` in the
    git config of the repository, the user or the machine names.
    """
    kept = _kept(env, common_dir)
    return {name: value for name, value in env.items() if name not in NAMES or name in kept}


def for_a_landing(env: Mapping[str, str], common_dir: str | None) -> dict[str, str]:
    """Returns the same without what is for a runner, and without settings of git."""
    kept = {*_kept(env, common_dir), *_COMPILERS}
    return {
        name: value
        for name, value in without_tokens(env, common_dir).items()
        if name in kept or not _is_for_a_runner(name.upper())
    }


def _is_for_a_runner(name: str) -> bool:
    return name in RUNNERS or name.startswith(BEGINS) or name.endswith(ENDS)


def _kept(env: Mapping[str, str], common_dir: str | None) -> list[str]:
    for path in config_files(common_dir, owners_environment(env)):
        if (said := config_value(path, "queenbee", "env")) is not None:
            return said.replace(",", " ").split()
    return []
