# A Homebrew formula, for a tap. Its test was not run.
#
# At a release: set `url` and `sha256` to those of the source archive, then
# `brew update-python-resources queenbee` adds the resources that it needs.
class Queenbee < Formula
  include Language::Python::Virtualenv

  desc "Coordination layer for coding agents that share a git repository"
  homepage "https://github.com/queenbee-hive/queenbee"
  url "https://files.pythonhosted.org/packages/source/q/queenbee-hive/queenbee_hive-0.3.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "rust" => :build # for orjson
  depends_on "git"
  depends_on "python@3.13"

  def install
    virtualenv_install_with_resources
    generate_completions_from_executable(bin/"queen", "completion")
    (man1/"queen.1").write Utils.safe_popen_read(bin/"queen", "help", "--man")
  end

  test do
    system "git", "init", "-q"
    system bin/"queen", "init"
    assert_match "Fix the form", shell_output("#{bin}/queen issue new 'Fix the form' && #{bin}/queen issues")
  end
end
