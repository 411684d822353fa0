#!/usr/bin/env bash
# Install the real things that `tests/real` runs: the executors (pinned), a browser, and a few system tools.
# Idempotent: what is there in the right version is used again. Prints one line for each real thing that was found;
# ends with 1 and a clear line when one is absent.
set -euo pipefail

CODEX_VERSION=0.171.0
CLAUDE_VERSION=2.1.332
real=${XDG_CACHE_HOME:-$HOME/.cache}/hoop-sentinel/real

fail() { echo "real: $1 is absent: $2" >&2; exit 1; }

case $(uname -s)-$(uname -m) in
  Linux-x86_64) platform=linux-x64 ;;
  Linux-aarch64) platform=linux-arm64 ;;
  Darwin-x86_64) platform=darwin-x64 ;;
  Darwin-arm64) platform=darwin-arm64 ;;
  *) fail executors "no build for $(uname -s) on $(uname -m)" ;;
esac

# The native binaries, not the node shims: a shim that is killed leaves its executor running.
codex_binary() { compgen -G "$real/node_modules/@openai/codex-$platform/vendor/*/bin/codex" | head -n 1; }
claude_binary() { compgen -G "$real/node_modules/@anthropic-ai/claude-code-$platform/claude" | head -n 1; }
version_of() { local home; home=$(mktemp -d); env -i PATH=/usr/bin:/bin HOME="$home" "$1" --version 2>/dev/null; rm -rf "$home"; }
is_version() { [ -x "${1:-}" ] && [[ "$(version_of "$1")" == *"$2"* ]]; }

if ! is_version "$(codex_binary || true)" "$CODEX_VERSION" || ! is_version "$(claude_binary || true)" "$CLAUDE_VERSION"; then
  command -v npm >/dev/null || fail executors "install npm (node 20 or newer), or put the pinned packages into $real"
  mkdir -p "$real"
  npm install --prefix "$real" --ignore-scripts --no-audit --no-fund --no-save --loglevel=error \
    "@openai/codex@$CODEX_VERSION" "@anthropic-ai/claude-code@$CLAUDE_VERSION" >&2
fi

missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
command -v ip >/dev/null || [ -x /sbin/ip ] || missing+=(iproute2)
command -v strace >/dev/null || missing+=(strace)
command -v unshare >/dev/null || missing+=(util-linux)
command -v systemd-analyze >/dev/null || missing+=(systemd)
[ -x /usr/sbin/sshd ] || missing+=(openssh-server)
command -v ssh >/dev/null || missing+=(openssh-client)
command -v sudo >/dev/null || missing+=(sudo)
# The far side runs with the system's own python; an unprivileged operator in the tests makes an environment with it.
/usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  policy=/usr/sbin/policy-rc.d # what is installed for the tests serves nobody: no sshd on all interfaces
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && trap 'rm -f "$policy"' EXIT; }
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"; } >&2
  [[ " ${missing[*]} " != *" openssh-server "* ]] || systemctl disable --quiet ssh.service 2>/dev/null || true
fi

executor() { # name, binary, version
  is_version "$2" "$3" || fail "$1" "version $3 is not at ${2:-$real/node_modules}: remove $real and run this again"
  echo "real: $1 $3 $2"
}
tool() { # name, candidates...
  local name=$1 found=''
  shift
  for one in "$@"; do found=${found:-$(command -v "$one" || true)}; done
  [ -n "$found" ] || fail "$name" "install its package (as root this script does it where there is apt-get)"
  echo "real: $name $found"
}

executor codex "$(codex_binary || true)" "$CODEX_VERSION"
executor claude "$(claude_binary || true)" "$CLAUDE_VERSION"
tool chromium chromium chromium-browser google-chrome
tool ip ip /sbin/ip
tool strace strace
tool unshare unshare
tool sshd /usr/sbin/sshd
tool ssh ssh
tool sudo sudo
tool visudo visudo /usr/sbin/visudo
tool python3 /usr/bin/python3
tool systemd-analyze systemd-analyze
