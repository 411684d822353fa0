#!/usr/bin/env bash
# A real `systemd --user` for one command, without touching this machine's own: namespaces of its own, a cgroup of its own.
#   unshare --mount --pid --fork --mount-proc --kill-child bash user_systemd.sh UID HOME COMMAND…
# The command runs as UID (a number without a name) with its manager's bus; needs root and cgroup v2.
set -euo pipefail
uid=$1 home=$2
shift 2
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/systemd/unit-root "/run/user/$uid"
group=/sys/fs/cgroup/user-systemd-$$-$RANDOM
mkdir -p "$group/manager"
chown -R "$uid:$uid" "$group" "/run/user/$uid"
chmod 700 "/run/user/$uid"
echo $$ >"$group/manager/cgroup.procs"
trap 'echo $$ >/sys/fs/cgroup/cgroup.procs; for _ in 1 2 3 4 5; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true; done' EXIT
as=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" LANG=C.UTF-8 XDG_RUNTIME_DIR="/run/user/$uid")
drop=(setpriv --reuid "$uid" --regid "$uid" --clear-groups)
[ "$uid" = 0 ] && drop=()
systemd=$(command -v /lib/systemd/systemd || command -v /usr/lib/systemd/systemd)
"${as[@]}" "${drop[@]}" "$systemd" --user </dev/null >/dev/null 2>&1 &
for _ in $(seq 200); do
  "${as[@]}" "${drop[@]}" systemctl --user is-active --quiet default.target && break
  sleep 0.05
done
set +e
"${as[@]}" "${drop[@]}" "$@"
code=$?
set -e
"${as[@]}" "${drop[@]}" systemctl --user exit || true
wait
exit "$code"
